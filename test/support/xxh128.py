"""XXH3-128 of bytes as 32 lower-case hex digits, by the C library's own implementation."""

import ctypes
import ctypes.util


class _Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_library = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
_library.XXH3_128bits.restype = _Hash
_library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh128(data):
    digest = _library.XXH3_128bits(bytes(data), len(data))
    return f"{digest.high:016x}{digest.low:016x}"
