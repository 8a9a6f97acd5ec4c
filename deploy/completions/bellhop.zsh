#compdef bellhop
# Written by deploy/manual/write from what `bellhop --help` says.

_bellhop() {
  local context state line
  typeset -A opt_args
  _arguments -C \
    {-h,--help}'[Print this help message and exit]' \
    '--version[Print the version, the commit, the compiler and the libraries, and exit]' \
    '1: :->command' \
    '*:: :->argument' && return
  case $state in
    command)
      local -a commands=(
        'run:Serve in the foreground until SIGTERM'
        'check:Say what a configuration means, or all that is wrong with it'
        'sweep:Remove what a store holds and nobody needs any more'
        'peek:Show the messages in front of a queue'
        'where:Say where payloads are'
        'replay:Send parked or dead messages back to where they came from'
        'status:Show what the running bellhop does\: trouble first, then its numbers'
        'health:Say whether the running bellhop is alive; answers within a second'
        'reload:Make the running bellhop read its configuration again, and wait for it'
        'tap:Print a line for each message that goes through the running bellhop'
        'drain:End the running bellhop as SIGTERM does\: each session when it is settled'
        'log-level:Change what the running bellhop logs, until it ends'
      )
      _describe -t commands command commands ;;
    argument)
      case $words[1] in
        run) _arguments {-h,--help}'[Print this help message and exit]' '--config[The YAML configuration]:FILE:_files' ;;
        check) _arguments '1:FILE:_files' {-h,--help}'[Print this help message and exit]' '--broker[Also compare the pipelines with what the broker has; changes nothing there. Exit code 1\: something differs, or the broker cannot be asked]' ;;
        sweep) _arguments '1:STORE: ' {-h,--help}'[Print this help message and exit]' '--config[The YAML configuration]:FILE:_files' '--older-than[Only what is older (objects\: the store'\''s retention; unfinished S3 uploads\: 24h)]:TIME: ' '--dry-run[Only say what would be removed]' ;;
        peek) _arguments '1:QUEUE: ' {-h,--help}'[Print this help message and exit]' '--config[The YAML configuration]:FILE:_files' '-n[At most so many messages]:N: ' '--vhost[Another virtual host than the configuration leads to]:NAME: ' '--offset[Where to begin in a stream\: first (the default), last, next, or a number]:OFFSET:(first last next)' '--force[Also what is close to its queue'\''s delivery limit]' '--body[Also the first 4 KiB of the payload]' '--save[Keep each payload, and what is said of its message, as new files in this folder]:DIR:_files -/' '--json[For programs]' ;;
        where) _arguments '1:KEY: ' {-h,--help}'[Print this help message and exit]' '--config[The YAML configuration]:FILE:_files' '--queue[Of the messages in front of this queue]:QUEUE: ' '-n[At most so many messages]:N: ' '--vhost[Another virtual host than the configuration leads to]:NAME: ' '--offset[Where to begin in a stream\: first (the default), last, next, or a number]:OFFSET:(first last next)' '--force[Also what is close to its queue'\''s delivery limit]' '--xxh128[The checksum that KEY'\''s payload should have (header bellhop-claim-xxh128)]:HEX: ' '--json[For programs]' ;;
        replay) _arguments '1:QUEUE: ' {-h,--help}'[Print this help message and exit]' '--config[The YAML configuration]:FILE:_files' '--to[Send all of them there; /QUEUE is a queue]:EXCHANGE/KEY: ' '--limit[At most so many]:N: ' '--match[Only messages with this header; the others stay]:HEADER=TEXT: ' '--rate[No faster than this]:N/s: ' '--dry-run[Only say where each would go]' '--without-cc[Send no copies\: CC and BCC stay in bellhop-cc, bellhop-bcc]' '--vhost[Another virtual host than the configuration leads to]:NAME: ' '--json[The report for programs]' ;;
        status) _arguments {-h,--help}'[Print this help message and exit]' '--socket[Its admin socket (/run/bellhop/admin.sock)]:PATH:_files' '--config[Its configuration, which says where the socket is]:FILE:_files' '--json[Print what /status of the admin socket answers]' '--watch[Print it again every two seconds]' ;;
        health) _arguments {-h,--help}'[Print this help message and exit]' '--socket[Its admin socket (/run/bellhop/admin.sock)]:PATH:_files' '--config[Its configuration, which says where the socket is]:FILE:_files' '--ready[Also ask whether a publish made now would be taken\: the broker is reached, the stores work]' ;;
        reload) _arguments {-h,--help}'[Print this help message and exit]' '--socket[Its admin socket (/run/bellhop/admin.sock)]:PATH:_files' '--config[Its configuration, which says where the socket is]:FILE:_files' '--json[Print the result as JSON]' ;;
        tap) _arguments {-h,--help}'[Print this help message and exit]' '--socket[Its admin socket (/run/bellhop/admin.sock)]:PATH:_files' '--config[Its configuration, which says where the socket is]:FILE:_files' '--route[Only what is published on this route of the configuration]:ROUTE: ' '--limit[End after so many messages]:N: ' '--json[Print each as a JSON object]' ;;
        drain) _arguments {-h,--help}'[Print this help message and exit]' '--socket[Its admin socket (/run/bellhop/admin.sock)]:PATH:_files' '--config[Its configuration, which says where the socket is]:FILE:_files' ;;
        log-level) _arguments '1:LEVEL:(trace debug info warn error)' {-h,--help}'[Print this help message and exit]' '--socket[Its admin socket (/run/bellhop/admin.sock)]:PATH:_files' '--config[Its configuration, which says where the socket is]:FILE:_files' ;;
      esac ;;
  esac
}

_bellhop "$@"
