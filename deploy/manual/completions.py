"""Completions for bash, zsh and fish: commands, options, and values where they are known: files, folders, a list of words."""

MARK = "# Written by deploy/manual/write from what `bellhop --help` says.\n"
FILES, FOLDERS = ("FILE", "PATH"), ("DIR",)


def _quoted(text):
    """For a shell, in apostrophes."""
    return "'" + text.replace("'", "'\\''") + "'"


# -- bash

BASH = MARK + r"""
_bellhop() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= options= values= kind=words i
  # `--config=FILE` is three words.
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      @NAMES@) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  # What comes after an option that has a value, or else as a command's argument.
  case $command:$before in
@VALUES@  esac
  case $command in
@OPTIONS@  esac
  if [[ $word == -* && $kind != value* ]]; then kind=words values=$options; fi
  COMPREPLY=()
  case $kind in
    *files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    *folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    *words) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word") ;;
  esac
}
complete -F _bellhop bellhop
"""


def _kind(argument):
    """How a value is completed: files, folders, words, or nothing."""
    if argument.value in FILES:
        return "files"
    if argument.value in FOLDERS:
        return "folders"
    return "words" if argument.choices else "nothing"


def bash(top, commands):
    values, options = [], []
    for command in commands.values():
        for option in command.options:
            if option.value:
                patterns = "|".join(f"{command.name}:{name}" for name in option.names)
                words = f" values='{' '.join(option.choices)}'" if option.choices else ""
                values.append(f"    {patterns}) kind=value-{_kind(option)}{words} ;;\n")
    for command in commands.values():
        for positional in command.positionals[:1]:
            words = f" values='{' '.join(positional.choices)}'" if positional.choices else ""
            values.append(f"    {command.name}:*) kind={_kind(positional)}{words} ;;\n")
    values.append(f"    :*) values='{' '.join(commands)}' ;;\n")
    for command in [top, *commands.values()]:
        names = " ".join(name for option in command.options for name in option.names)
        options.append(f"    {command.name or _quoted('')}) options='{names}' ;;\n")
    return BASH.replace("@NAMES@", " | ".join(commands)).replace("@VALUES@", "".join(values)).replace("@OPTIONS@", "".join(options))


# -- zsh

ZSH = "#compdef bellhop\n" + MARK + r"""
_bellhop() {
  local context state line
  typeset -A opt_args
  _arguments -C \
@TOP@    '1: :->command' \
    '*:: :->argument' && return
  case $state in
    command)
      local -a commands=(
@COMMANDS@      )
      _describe -t commands command commands ;;
    argument)
      case $words[1] in
@ARGUMENTS@      esac ;;
  esac
}

_bellhop "$@"
"""


def _zsh_text(text):
    for character in "\\[]:":
        text = text.replace(character, "\\" + character)
    return text


def _zsh_action(argument):
    return {"files": "_files", "folders": "_files -/", "words": f"({' '.join(argument.choices)})"}.get(_kind(argument), " ")


def _zsh_argument(argument):
    explanation = _zsh_text(argument.explanation)
    value = f":{_zsh_text(argument.value)}:{_zsh_action(argument)}" if argument.value else ""
    if not argument.names:
        return _quoted(f"1{value}")
    if len(argument.names) == 1:
        return _quoted(f"{argument.names[0]}[{explanation}]{value}")
    return "{" + ",".join(argument.names) + "}" + _quoted(f"[{explanation}]{value}")


def zsh(top, commands):
    lines = "".join(f"        {_quoted(name + ':' + _zsh_text(command.summary))}\n" for name, command in commands.items())
    arguments = "".join(f"        {name}) _arguments {' '.join(_zsh_argument(argument) for argument in command.arguments)} ;;\n"
                        for name, command in commands.items())
    options = "".join(f"    {_zsh_argument(option)} \\\n" for option in top.options)
    return ZSH.replace("@TOP@", options).replace("@COMMANDS@", lines).replace("@ARGUMENTS@", arguments)


# -- fish

def _fish_line(condition, argument):
    names = "".join(f" {'-s' if not name.startswith('--') else '-l'} {name.lstrip('-')}" for name in argument.names)
    kind = _kind(argument) if argument.value else ""
    value = {"files": " -F", "folders": " -a '(__fish_complete_directories)'", "words": f" -a {_quoted(' '.join(argument.choices))}"}.get(kind, "")
    if argument.names and argument.value:
        value = (" -r" if kind == "files" else " -x") + value
    explanation = f" -d {_quoted(argument.explanation)}" if argument.names else ""
    return f"complete -c bellhop -n {_quoted(condition)}{names}{value}{explanation}\n"


def fish(top, commands):
    lines = [MARK + "complete -c bellhop -f\n"]
    lines += [_fish_line("__fish_use_subcommand", option) for option in top.options]
    lines += [f"complete -c bellhop -n __fish_use_subcommand -a {name} -d {_quoted(command.summary)}\n" for name, command in commands.items()]
    for name, command in commands.items():
        wanted = [argument for argument in command.arguments if argument.names or _kind(argument) != "nothing"]
        lines += [_fish_line(f"__fish_seen_subcommand_from {name}", argument) for argument in wanted]
    return "".join(lines)
