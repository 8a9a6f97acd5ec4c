# Set-up that test/run and deploy/demo share: Debian packages and the build. Sourced by them; ROOT is the checkout.

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
can_be_root() { [ "$(id -u)" = 0 ] || { command -v sudo && sudo -v; } >/dev/null; }

# RabbitMQ's nodes are named after this host here, as NAME@localhost. Without the name a node ends with a crash dump, minutes later.
needs_localhost() {
  local address
  read -r address _ < <(getent ahostsv4 localhost) || true
  case ${address:-} in 127.*) return ;; esac
  echo "This host does not know the name 'localhost', and RabbitMQ's node here has it in its own name." >&2
  echo "Add this line to /etc/hosts and try again:  127.0.0.1 localhost" >&2
  return 1
}

# The packages of test/packages for the given uses that are not installed, unless a command stands for them.
missing_packages() {
  local use package command
  while read -r use package command; do
    case " $* " in *" $use "*) ;; *) continue ;; esac
    if [ -n "$command" ] && command -v "$command" >/dev/null; then continue; fi
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done < <(grep -v '^#' "$ROOT/test/packages")
}

# install_packages USE...: RabbitMQ's package would start a system-wide broker, which nobody here needs; policy-rc.d, for the time
# of the installation, says that it must not. (BELLHOP_POLICY_FILE: where a test has it.)
install_packages() {
  local missing policy=${BELLHOP_POLICY_FILE:-/usr/sbin/policy-rc.d} status=0
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! can_be_root; then
    echo "Packages are missing, and only root may install them. Let the administrator of this host run this line, then try again:" >&2
    printf '\n    apt-get update && apt-get install --no-install-recommends %s\n\n' "${missing[*]}" >&2
    case " ${missing[*]} " in *" rabbitmq-server "*)
      echo "(The package rabbitmq-server also starts a broker for the whole host. Nothing here uses it:" >&2
      echo " systemctl disable --now rabbitmq-server)" >&2 ;;
    esac
    case " ${missing[*]} " in *" prometheus "*)
      echo "(So does the package prometheus with a Prometheus: systemctl disable --now prometheus)" >&2 ;;
    esac
    return 1
  fi
  say "Installing packages: ${missing[*]}"
  (
    if [ ! -e $policy ]; then
      # It goes whatever ends this: it would keep every later package's service from starting.
      trap 'as_root rm -f $policy' EXIT
      trap 'exit 129' HUP
      trap 'exit 130' INT
      trap 'exit 143' TERM
      printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null || exit 1
      as_root chmod 755 $policy
    fi
    as_root sh -c 'export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"' \
      sh "${missing[@]}" >"$ROOT/build/apt.log" 2>&1
  ) || status=$?
  if [ $status != 0 ]; then tail -20 "$ROOT/build/apt.log" >&2; fi
  return $status
}

# npm_packages FOLDER NAME: what FOLDER's lock file says, into build/NAME.
npm_packages() {
  if cmp -s "$1/package-lock.json" "$ROOT/build/$2/installed"; then return; fi
  say "Installing npm packages for $2"
  mkdir -p "$ROOT/build/$2"
  cp "$1"/package*.json "$ROOT/build/$2/"
  (cd "$ROOT/build/$2" && npm ci --no-audit --no-fund --loglevel=error && cp package-lock.json installed)
}

# use_ccache: where it is installed, every build uses it, and builds of the same sources in two folders share what was compiled.
use_ccache() {
  command -v ccache >/dev/null || return 0
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_NOHASHDIR=1
  [ -n "$(ccache --get-config base_dir)" ] || export CCACHE_BASEDIR=$ROOT
}

# build_preset PRESET [TARGET...]: all targets when none is named.
build_preset() {
  local preset=$1
  shift
  say "Building, preset $preset"
  use_ccache
  (cd "$ROOT" && cmake --preset "$preset") >"$ROOT/build/configure-$preset.log" 2>&1 ||
    { tail -40 "$ROOT/build/configure-$preset.log" >&2; return 1; }
  (cd "$ROOT" && cmake --build --preset "$preset" -j "${JOBS:-2}" ${1:+--target "$@"})
}
