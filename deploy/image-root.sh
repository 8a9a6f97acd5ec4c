#!/bin/bash
# Puts the root of the image together. The Dockerfile runs it where the program was built.
#
#   deploy/image-root.sh PROGRAM FOLDER     as root, on the Debian that PROGRAM was built on; FOLDER is made
#
# The program, the libraries that it names and theirs, and what these need to find users, hosts and authorities. Everything belongs to
# root, but the folders that bellhop writes to.
set -eu -o pipefail
program=$(realpath "$1") root=$2
user=10001 group=10001

fail() {
  echo "image-root.sh: $*" >&2
  exit 1
}

mkdir "$root"
cd "$root"

# /usr is merged, as in Debian: a library is found by either path.
mkdir -p usr/bin usr/lib usr/lib64 usr/share/doc/bellhop etc/bellhop var/lib/dpkg/status.d run
ln -s usr/bin bin
ln -s usr/lib lib
ln -s usr/lib64 lib64
cp "$program" usr/bin/bellhop

# The names of libraries in the program are those that it is linked with, and those that it loads when it needs them. (In the program
# each ends with a zero byte, but other text may stand before it.)
mapfile -t names < <(grep -azoE 'lib[A-Za-z0-9_.+-]+\.so\.[0-9.]+$' "$program" | tr '\0' '\n' | sort -u)
[ ${#names[@]} -gt 0 ] || fail "$program names no library"
named=()
for name in "${names[@]}"; do
  path=$(ldconfig -p | awk -v name="$name" '$1 == name && !found { found = 1; print $NF }')
  [ -n "$path" ] || fail "$program names the library $name, which is not installed here"
  named+=("$path")
done
needed=$(ldd "$program" "${named[@]}")
case $needed in *"not found"*) fail "libraries are missing: $needed" ;; esac
mapfile -t libraries < <(printf '%s\n' "${named[@]}" && awk '/=> \// { print $3 } /^\t\// { print $1 }' <<<"$needed")
mapfile -t libraries < <(printf '%s\n' "${libraries[@]}" | sort -u)
for library in "${libraries[@]}"; do
  mkdir -p ".${library%/*}"
  cp -L "$library" ".$library"
done

# Users and groups: the image's own. Hosts: /etc/hosts, which the container's engine writes, then DNS.
cat >etc/passwd <<END
root:x:0:0:root:/nonexistent:/usr/sbin/nologin
bellhop:x:$user:$group:bellhop:/var/lib/bellhop:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
END
printf '%s\n' 'root:x:0:' "bellhop:x:$group:" 'nogroup:x:65534:' >etc/group
printf '%s\n' 'passwd: files' 'group: files' 'hosts: files dns' >etc/nsswitch.conf
cp -L /etc/os-release etc/

# The authorities that the certificates of the broker and of the S3 service are verified with, and OpenSSL's settings, as in Debian.
mkdir -p etc/ssl/certs usr/lib/ssl
cp -L /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/
cp -L /etc/ssl/openssl.cnf etc/ssl/
ln -s /etc/ssl/certs usr/lib/ssl/certs
ln -s /etc/ssl/openssl.cnf usr/lib/ssl/openssl.cnf

# The packages that these files are from. Their own lists may have a path with or without /usr. The last two are compiled in.
packages=(base-files ca-certificates openssl nlohmann-json3-dev libcli11-dev)
owners=$(dpkg-query -S "${libraries[@]}" "${libraries[@]/#/\/usr}" "${libraries[@]#/usr}" 2>/dev/null || true)
for library in "${libraries[@]}"; do
  package=$(awk -v path="${library#/usr}" '$2 == path || $2 == "/usr" path { sub(/:$/, "", $1); print $1 }' <<<"$owners")
  [ -n "$package" ] || fail "$library belongs to no package, so its licence is not known"
  packages+=("${package%%[[:space:]]*}")
done
# Of each its licence, and its entry for scanners of images.
for package in $(printf '%s\n' "${packages[@]}" | sort -u); do
  name=${package%%:*}
  mkdir -p "usr/share/doc/$name"
  cp -L "/usr/share/doc/$name/copyright" "usr/share/doc/$name/"
  dpkg-query -s "$package" >"var/lib/dpkg/status.d/$name"
done
cp -a /usr/share/common-licenses usr/share/

# Whoever is in the group may use the socket; only bellhop may put one there.
install -d -o $user -g $group -m 0750 run/bellhop var/lib/bellhop var/lib/bellhop/claims
install -d -m 1777 tmp
