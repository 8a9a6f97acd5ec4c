# Written by deploy/manual/write from what `bellhop --help` says.

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
      run | check | sweep | peek | where | replay | status | health | reload | tap | drain | log-level) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  # What comes after an option that has a value, or else as a command's argument.
  case $command:$before in
    run:--config) kind=value-files ;;
    sweep:--config) kind=value-files ;;
    sweep:--older-than) kind=value-nothing ;;
    peek:--config) kind=value-files ;;
    peek:-n) kind=value-nothing ;;
    peek:--vhost) kind=value-nothing ;;
    peek:--offset) kind=value-words values='first last next' ;;
    peek:--save) kind=value-folders ;;
    where:--config) kind=value-files ;;
    where:--queue) kind=value-nothing ;;
    where:-n) kind=value-nothing ;;
    where:--vhost) kind=value-nothing ;;
    where:--offset) kind=value-words values='first last next' ;;
    where:--xxh128) kind=value-nothing ;;
    replay:--config) kind=value-files ;;
    replay:--to) kind=value-nothing ;;
    replay:--limit) kind=value-nothing ;;
    replay:--match) kind=value-nothing ;;
    replay:--rate) kind=value-nothing ;;
    replay:--vhost) kind=value-nothing ;;
    status:--socket) kind=value-files ;;
    status:--config) kind=value-files ;;
    health:--socket) kind=value-files ;;
    health:--config) kind=value-files ;;
    reload:--socket) kind=value-files ;;
    reload:--config) kind=value-files ;;
    tap:--socket) kind=value-files ;;
    tap:--config) kind=value-files ;;
    tap:--route) kind=value-nothing ;;
    tap:--limit) kind=value-nothing ;;
    drain:--socket) kind=value-files ;;
    drain:--config) kind=value-files ;;
    log-level:--socket) kind=value-files ;;
    log-level:--config) kind=value-files ;;
    check:*) kind=files ;;
    sweep:*) kind=nothing ;;
    peek:*) kind=nothing ;;
    where:*) kind=nothing ;;
    replay:*) kind=nothing ;;
    log-level:*) kind=words values='trace debug info warn error' ;;
    :*) values='run check sweep peek where replay status health reload tap drain log-level' ;;
  esac
  case $command in
    '') options='-h --help --version' ;;
    run) options='-h --help --config' ;;
    check) options='-h --help --broker' ;;
    sweep) options='-h --help --config --older-than --dry-run' ;;
    peek) options='-h --help --config -n --vhost --offset --force --body --save --json' ;;
    where) options='-h --help --config --queue -n --vhost --offset --force --xxh128 --json' ;;
    replay) options='-h --help --config --to --limit --match --rate --dry-run --without-cc --vhost --json' ;;
    status) options='-h --help --socket --config --json --watch' ;;
    health) options='-h --help --socket --config --ready' ;;
    reload) options='-h --help --socket --config --json' ;;
    tap) options='-h --help --socket --config --route --limit --json' ;;
    drain) options='-h --help --socket --config' ;;
    log-level) options='-h --help --socket --config' ;;
  esac
  if [[ $word == -* && $kind != value* ]]; then kind=words values=$options; fi
  COMPREPLY=()
  case $kind in
    *files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    *folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    *words) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word") ;;
  esac
}
complete -F _bellhop bellhop
