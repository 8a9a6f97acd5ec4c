"""Text for man pages, in the language of man(7)."""

import re


def escape(text):
    """Text as it stands: no character of it is a command."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    for character, name in {"~": "ti", "^": "ha", "`": "ga", "'": "aq", '"': "dq"}.items():
        text = text.replace(character, f"\\({name}")
    return "\\&" + text if text.startswith(".") else text


def bold(text):
    return f"\\fB{escape(text)}\\fR"


def italic(text):
    return f"\\fI{escape(text)}\\fR"


def prose(text):
    """Sentences, a line each; what stands in `backquotes` becomes bold. The last parts of words like well-known stay hyphens."""
    def piece(part):
        return bold(part[1:-1]) if part.startswith("`") else re.sub(r"(?<=[A-Za-z])\\-(?=[A-Za-z])", "-", escape(part))

    text = "".join(piece(part) for part in re.split(r"(`[^`]+`)", text) if part)
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in re.split(r"(?<=[.:]) +(?=[A-Z])", text))


def item(head, text):
    """A list's entry: its head, and below it what it means."""
    return f".TP\n{head}\n{text}\n"
