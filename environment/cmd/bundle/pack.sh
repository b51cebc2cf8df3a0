#!/usr/bin/env bash
# pack.sh STAGE OUT SIZE: packs the folder STAGE, whose name is the bundle's, into
# checksummed parts of at most SIZE in the new folder OUT/NAME, with install.sh.
set -euo pipefail

stage=$1 out=$2 size=$3
name=$(basename "$stage")
[[ ! -e "$out/$name" ]] || {
  printf 'error: %s is there already; remove it, or choose another folder with --out\n' "$out/$name" >&2
  exit 1
}
mkdir -p "$out"
part=$(mktemp -d "$out/.bundle.XXXXXX.part")
trap 'rm -rf "$part"' EXIT
cp "$(dirname "${BASH_SOURCE[0]}")/target/install.sh" "$part/"

# The last file is run.sh, whose presence tells that all others were unpacked.
{
  cd "$(dirname "$stage")"
  find "$name" -type f ! -path "$name/run.sh" | LC_ALL=C sort
  printf '%s\n' "$name/run.sh"
} | tar --create --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -C "$(dirname "$stage")" --verbatim-files-from --files-from=- |
  gzip --no-name | split --bytes="$size" --numeric-suffixes=1 --suffix-length=2 - "$part/$name.tar.gz.part" || {
  printf 'error: packing failed; if there were more than 99 parts of %s, choose a larger --part-size\n' "$size" >&2
  exit 1
}
(cd "$part" && sha256sum -- *.part[0-9][0-9] install.sh >SHA256SUMS && sync -- *)
chmod 755 "$part"
mv "$part" "$out/$name"
trap - EXIT
printf 'parts: %d, %s\n' "$(find "$out/$name" -name '*.part*' | wc -l)" "$(du -sh --apparent-size "$out/$name" | cut -f 1)"
