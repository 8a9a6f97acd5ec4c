"""Fixtures of the tests that use the image.

    archive     a file with the image bellhop:tested, for `podman load`
"""

import pytest

from support import built_image


@pytest.fixture(scope="session")
def archive():
    return built_image.archive()
