#!/bin/sh
# Joins the parts of a bundle, which lie beside this file, and unpacks them.
set -eu

help() {
  cat <<'HELP'
Usage: sh install.sh [FOLDER]

Checks the parts beside this file, joins and unpacks them into a new folder below
FOLDER (default: the folder of this file). Names the parts that are missing or
damaged; copy those again, and run it again.
HELP
}

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

case ${1:-} in
  -h | --help)
    help
    exit
    ;;
  -*)
    printf 'error: unknown argument "%s"\nSee sh install.sh --help\n' "$1" >&2
    exit 2
    ;;
esac
if [ $# -gt 1 ]; then
  printf 'error: install.sh takes one folder\nSee sh install.sh --help\n' >&2
  exit 2
fi

for tool in sha256sum gzip tar; do
  command -v "$tool" >/dev/null || fail "the program $tool is needed, and is not there"
done

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p -- "${1:-$here}"
into=$(CDPATH='' cd -- "${1:-$here}" && pwd)
[ -f "$here/SHA256SUMS" ] || fail "SHA256SUMS is missing in $here; copy it there, too"

name=
wrong=0
count=0
while read -r sum file; do
  case $file in
    *.tar.gz.part[0-9][0-9])
      name=${file%.tar.gz.part*}
      count=$((count + 1))
      ;;
    install.sh) ;;
    *) fail "SHA256SUMS is damaged; copy it again" ;;
  esac
  if [ ! -f "$here/$file" ]; then
    printf 'missing: %s\n' "$file" >&2
    wrong=$((wrong + 1))
    continue
  fi
  actual=$(sha256sum <"$here/$file")
  if [ "${actual%% *}" != "$sum" ]; then
    printf 'damaged: %s\n' "$file" >&2
    wrong=$((wrong + 1))
  fi
done <"$here/SHA256SUMS"
[ "$count" -gt 0 ] || fail "SHA256SUMS is damaged; copy it again"
[ "$wrong" -eq 0 ] || fail "$wrong files are missing or damaged; copy them into $here, and run this again"
printf 'All %d parts are there and undamaged.\n' "$count"

bundle=$into/$name
if [ -e "$bundle" ]; then
  printf 'Installed already: %s/run.sh --help\n' "$bundle"
  exit
fi
# What another try left unfinished begins anew.
part=$into/.$name.part
rm -rf -- "$part"
mkdir -- "$part"
printf 'Unpacking ...\n'
cat "$here/$name".tar.gz.part[0-9][0-9] | gzip -dc | tar -xf - -C "$part" ||
  fail "unpacking into $part failed, see above"
# The script is the last file of the archive.
[ -f "$part/$name/run.sh" ] || fail "unpacking into $part failed, see above"
mv -- "$part/$name" "$bundle"
rmdir -- "$part"
printf 'Ready. Next: %s/run.sh --help\n' "$bundle"
