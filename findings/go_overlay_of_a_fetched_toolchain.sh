#!/usr/bin/env bash
# Expected: go build -overlay, which replaces files for one build, replaces a file of the standard library or does not, whichever
#   way Go was installed.
# Seen: if the go command fetched the toolchain itself, because of the line "go" or "toolchain" of a go.mod or of GOTOOLCHAIN, it
#   refuses: such a toolchain is a module, and files of the module cache may not be replaced, as "go help build" says. The same
#   files in a folder of their own, as from the archive of Go, are replaced.
# Why it matters: a project that builds with a corrected file of the standard library works for whoever installed this version
#   of Go, and fails for others with the same version. "go version" tells no difference.
# Versions: Go 1.26.1 as a module, fetched by Go 1.26.8. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOPATH="$work/go" GOCACHE="$work/cache" GOFLAGS=-modcacherw GOWORK=off
unset GOEXPERIMENT GOROOT GOMODCACHE
cd "$work"
version=go1.26.1
if [[ $(GOTOOLCHAIN=local go env GOVERSION) == "$version" ]]; then version=go1.26.2; fi # a toolchain that has to be fetched
printf 'module example\n\ngo 1.21\n' >go.mod
printf 'package main\n\nimport "errors"\n\nfunc main() { println(errors.New("plain").Error()) }\n' >main.go

# built GO ROOT: what the program prints that GO builds with another file errors.go of its standard library.
built() {
  sed 's/return &errorString{text}/return \&errorString{"replaced"}/' "$2/src/errors/errors.go" >errors.txt
  printf '{"Replace": {"%s/src/errors/errors.go": "%s/errors.txt"}}' "$2" "$work" >overlay.json
  "$1" build -overlay overlay.json -o program . && ./program
}

root=$(GOTOOLCHAIN=$version go env GOROOT)
fetched=$(GOTOOLCHAIN=$version built go "$root" 2>&1) || true
cp -r "$root" "$work/copy"
copied=$(GOTOOLCHAIN=local built "$work/copy/bin/go" "$work/copy" 2>&1) || true
echo "$version, fetched by go: ${fetched//"$work"/...}"
echo "$version, the same files in another folder: $copied"
[[ $fetched == *"must not be replaced"* && $copied == replaced ]] || { echo changed >&2; exit 1; }
