#!/bin/bash
# Tries provision/provision.sh in a clean Debian. Usage: clean_root.sh ROOT SETTINGS CHECKOUT
#
# To be called as the first process of mount, PID, UTS and IPC namespaces: ROOT, an empty directory, becomes a tmpfs, and
# so everything goes with the namespaces. SETTINGS has the files that settings.py writes. In ROOT a user who may sudo
# copies CHECKOUT's files and provisions the machine. Every stage is announced by a line `== NAME SECONDS`.
set -Eeuo pipefail
trap 'echo "clean_root: stopped at line $LINENO, exit status $?: $BASH_COMMAND" >&2' ERR

readonly root=$1 settings=$2 checkout=$3
readonly user=student
readonly home=/home/$user
readonly copy=$home/emu

stage() { echo "== $1 $SECONDS"; }

# Runs a command in ROOT. No chroot: Mininet enters mount namespaces, and is then at their root.
inside() {
  # shellcheck disable=SC2016  # the inner shell expands it
  unshare --mount bash -c 'cd "$0" && pivot_root . . && umount --lazy . && exec "$@"' "$root" "$@"
}

# As that user, in the copy, with this machine's way to packages.
as_user() {
  local variables
  mapfile -t variables <"$settings/environment"
  inside env --ignore-environment "${variables[@]}" LANG=C.UTF-8 HOME="$home" PATH=/usr/local/bin:/usr/bin:/bin \
    /usr/sbin/runuser --user "$user" -- bash -c "cd $copy && $1"
}

make_base() {
  local proxy
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  http_proxy=${http_proxy:-${proxy:-}} debootstrap --variant=minbase --include=sudo bookworm "$root" "$(<"$settings/mirror")" \
    >"$settings/log" 2>&1 || { cat "$settings/log"; return 1; }
}

mount_what_a_kernel_offers() {
  local path
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  ln -sf pts/ptmx "$root/dev/ptmx"
  mkdir -p "$root/dev/net"
  mknod "$root/dev/net/tun" c 10 200
  while IFS= read -r path; do
    mkdir -p "$root/machine$(dirname "$path")"
    [ -e "$root/machine$path" ] || if [ -d "$path" ]; then mkdir "$root/machine$path"; else touch "$root/machine$path"; fi
    mount --bind "$path" "$root/machine$path"
    mount -o remount,bind,ro "$root/machine$path"
  done <"$settings/mounts"
}

hand_on_settings() {
  cp "$settings/sources.list" "$root/etc/apt/sources.list"
  cp "$settings/apt.conf" "$root/etc/apt/apt.conf.d/01machine"
  cp "$settings/pip.conf" "$root/etc/pip-of-machine.conf"
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  echo "127.0.1.1 $(hostname)" >>"$root/etc/hosts"
}

make_user() {
  inside useradd --create-home --shell /bin/bash "$user"
  echo "$user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$user"
  mkdir "$root$copy"
  git -C "$checkout" ls-files -z --cached --others --exclude-standard |
    tar --directory "$checkout" --ignore-failed-read --null --files-from - --create |
    tar --directory "$root$copy" --extract --no-same-owner
  inside chown -R "$user:" "$copy"
}

files() { (cd "$root$copy" && find . | sort); }

mount -t tmpfs -o mode=0755,size=4g emu "$root"
hostname clean
stage base
make_base
mount_what_a_kernel_offers
hand_on_settings
make_user
before=$(files)

stage provision
as_user provision/provision.sh
stage again
as_user provision/provision.sh
stage installed
as_user ".venv/bin/pip list --format=freeze --exclude-editable"
stage check
as_user "emu check scenarios/quickstart.yaml"
stage run
# 3 and 4 are verdicts too: the caller looks for the reasons.
as_user "sudo emu run tests/provision/small.yaml --json --out /tmp/run" || [[ $? = [34] ]]
stage clean
as_user "make clean"
diff <(echo "$before") <(files) && [ ! -e "$root/usr/local/bin/emu" ] && echo "nothing is left"
stage end
