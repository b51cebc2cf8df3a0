# shellcheck shell=bash
# What the commands of this folder share. Sourced, not run.
#
# Everything installed stays in the folder .env of the checkout: Python packages
# in .env/venv, Go tools in .env/bin, the source of the notebook kernel in
# .env/gonb, its description for Jupyter in .env/jupyter, XLA's plugin for
# processors in .env/xla. Go's own module and build caches are where Go keeps them.
# Removing .env undoes the set-up.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# What the user's settings would change in what is built, installed or run: a
# go.work above the checkout, modules of other Python packages.
export GOWORK=off GO111MODULE=on
# In a terminal of JupyterLab, whose cells download nothing, a set-up may.
if [[ ${GOPROXY:-} == off && -n ${DENSITYUNCERTAINTY_GOPROXY:-} ]]; then export GOPROXY=$DENSITYUNCERTAINTY_GOPROXY; fi
# GOFLAGS for what is built without the settings of enter. Were it empty, the flags
# that go env -w has written would count.
plain_flags=-buildvcs=false
unset PYTHONPATH PYTHONSTARTUP PYTHONHOME JUPYTER_PATH

state="$root/.env"
# The Go of set_up_vectors; is it there, enter puts it first. What makes it asks the one of this machine.
guarded_go="$state/go/bin"
export PATH=${PATH//"$guarded_go:"/}
python=${PYTHON:-python3}
xla_plugin=pjrt_c_api_cpu_plugin.so

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# usage_error TEXT: for wrong arguments; the caller's name leads to its help.
usage_error() {
  printf 'error: %s\nSee ./environment/%s --help\n' "$*" "$(basename "$0")" >&2
  exit 2
}

# step LABEL COMMAND...: runs the command with its output in a log, shows every
# few seconds that it is alive, and shows the end of the log when it fails.
step() {
  local label=$1 began=$SECONDS log status=0 ticker
  shift
  mkdir -p "$state/log"
  log="$state/log/${label//[^a-zA-Z0-9]/-}.log"
  : >"$log"
  printf '%s ...\n' "$label"
  (
    exec 9>&-
    # sleep must not hold the terminal's pipe open, nor this loop outlive the script.
    while sleep 5 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
      printf '    %3d s  %s: %s\n' $((SECONDS - began)) "$label" "$(tail -n 1 "$log" | tr -d '\r' | cut -c 1-100)"
    done
  ) &
  ticker=$!
  "$@" >"$log" 2>&1 9>&- || status=$?
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  if ((status != 0)); then
    tail -n 40 "$log" >&2
    fail "\"$label\" failed after $((SECONDS - began)) s; the whole log is in ${log#"$root"/}"
  fi
  printf '    %s: done in %d s\n' "$label" $((SECONDS - began))
}

# once NAME LABEL KEY COMMAND...: a step that is left out if it was finished with the
# same key before. One that was interrupted is made again.
once() {
  local stamp="$state/stamp/$1" key
  key=$(cksum <<<"$go_version $root $3")
  if [[ -f $stamp && $(<"$stamp") == "$key" ]]; then return; fi
  rm -f "$stamp"
  step "$2" "${@:4}"
  mkdir -p "$state/stamp"
  printf '%s\n' "$key" >"$stamp"
}

check_go() {
  local said wanted
  wanted="version $(sed -n 's/^go //p' "$root/go.mod") or newer is needed: https://go.dev/doc/install"
  command -v go >/dev/null || fail "Go is not installed, or not on PATH; $wanted"
  listed() { said=$(GOFLAGS=$plain_flags go -C "$root" list -m 2>&1); }
  # Some installations fetch no newer Go by themselves; set-up does, unless the variable forbids it.
  listed || { [[ -z ${GOTOOLCHAIN:-} ]] && export GOTOOLCHAIN=auto && listed; } ||
    fail "$(command -v go) does not work here: $said"$'\n'"$wanted, or GOTOOLCHAIN=auto, with which Go fetches it"
  go_version=$(go -C "$root" env GOVERSION)
  # Kernels build outside of the checkout, whose go.mod asks for this toolchain.
  if [[ $(cd / && GOTOOLCHAIN=local GOFLAGS=$plain_flags GOEXPERIMENT='' go env GOVERSION) != "$go_version" ]]; then
    export GOTOOLCHAIN=${go_version%% *}
  fi
}

check_python() {
  command -v "$python" >/dev/null ||
    fail "Python ($python) is not installed, or not on PATH. Version 3.10 or newer is needed; set PYTHON to name another program."
  python_version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>&1) || fail "$python does not work: $python_version"
  [[ $python_version =~ ^3\.[1-9][0-9] ]] ||
    fail "Python 3.10 or newer is needed, but $(command -v "$python") is $python_version; set PYTHON to name another program."
}

# with_xla: whether programs are to contain XLA, which needs a C compiler and
# makes every notebook cell link longer: only where there is a plugin to use it.
with_xla() {
  case ${DENSITYUNCERTAINTY_XLA:-auto} in
    1) return 0 ;;
    0) return 1 ;;
    auto) ;;
    *) fail "DENSITYUNCERTAINTY_XLA=$DENSITYUNCERTAINTY_XLA: want 1 (with XLA), 0 (without) or nothing (where a plugin is installed)" ;;
  esac
  [[ ${GOMLX_BACKEND:-} == xla* ]] && return 0
  has_xla "$state/xla" && return 0
  local folder
  while IFS= read -rd : folder; do compgen -G "$folder/pjrt*plugin*" >/dev/null && return; done <<<"$(plugin_folders):"
  return 1
}

# plugin_folders: where go-xla looks for plugins.
plugin_folders() {
  local home="${HOME:-}/.local/lib/go-xla" system=/usr/local/lib/go-xla
  printf '%s\n' "${PJRT_PLUGIN_LIBRARY_PATH:-$home:$home/nvidia:$system:$system/nvidia${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
}

# has_xla FOLDER: whether it holds XLA's plugin for processors, as installed here.
has_xla() {
  [[ -f "$1/$xla_plugin" ]]
}

# check_c_compiler NAME WITHOUT: fails where there is none for NAME; WITHOUT says
# how to do without it.
check_c_compiler() {
  local compiler=${CC:-$(go env CC)}
  command -v "${compiler%% *}" >/dev/null ||
    fail "$1 needs a C compiler, and \"$compiler\" is not there. Install one (Debian, Ubuntu: sudo apt install build-essential), or $2 to do without $1."
}

# enter: the variables that programs of this environment run with.
enter() {
  export PATH="$state/bin:$state/venv/bin:$PATH"
  if [[ -d $guarded_go ]]; then
    export PATH="$guarded_go:$PATH"
    unset GOROOT
  fi
  export JUPYTER_DATA_DIR="$state/jupyter/data"
  export JUPYTER_CONFIG_DIR="$state/jupyter/config"
  export JUPYTER_CONFIG_PATH="$root/environment/jupyter"
  export JUPYTER_RUNTIME_DIR="$state/jupyter/runtime"
  export IPYTHONDIR="$state/jupyter/ipython"
  # AVX2 and AVX-512 matrix products in the pure Go backend.
  export GOEXPERIMENT=${GOEXPERIMENT:-simd}
  # With simd, Go 1.27 leaves the upper halves of vector registers dirty when it interrupts a
  # goroutine: math.Exp then takes a hundred times as long, for good (8 ns, 1200 ns after a second).
  export GODEBUG=asyncpreemptoff=1${GODEBUG:+,$GODEBUG}
  # Without debug information a notebook cell links in a fifth of the time.
  export GOFLAGS=-ldflags=-w
  # Git says nothing of another user's checkout, and without its answer Go builds no program.
  if [[ -e "$root/.git" ]] && ! git -C "$root" rev-parse HEAD >/dev/null 2>&1; then GOFLAGS+=" $plain_flags"; fi
  with_xla || GOFLAGS+=' -tags=noxla'
  if has_xla "$state/xla"; then
    PJRT_PLUGIN_LIBRARY_PATH="$state/xla:$(plugin_folders)"
    export PJRT_PLUGIN_LIBRARY_PATH
  fi
  # What notebooks keep lies in this checkout.
  export DENSITYUNCERTAINTY_CHECKOUT=$root
}

# set_up_vectors: a copy of Go in .env/go that loads the end of an array safely, where Go does not (see tools/vectors.py).
set_up_vectors() {
  once vectors "Guard of vector loads" "$(<"$root/environment/tools/vectors.py")" \
    "$python" "$root/environment/tools/vectors.py" "$(go -C "$root" env GOROOT)" "$state/go"
}

set_up_python() {
  once python "Python packages" "$python_version $(<"$root/environment/requirements.txt")" install_python
}

install_python() {
  rm -rf "$state/venv"
  "$python" -m venv "$state/venv"
  pip_install --no-deps --no-compile -r "$root/environment/requirements.txt"
}

pip_install() {
  "$state/venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off --require-hashes --only-binary :all: "$@"
}

# set_up_packages NAME FOLDER LABEL: the Python packages of requirements-NAME.txt, in .env/FOLDER.
set_up_packages() {
  [[ -d $state/$2 ]] || rm -f "$state/stamp/$2"
  once "$2" "$3" "$python_version $(<"$root/environment/requirements-$1.txt")" install_packages "$1" "$state/$2"
}

install_packages() {
  rm -rf "$2"
  pip_install --target "$2" -r "$root/environment/requirements-$1.txt" || return
  [[ $1 != xla ]] || mv "$2/fastatomstruct_xla_cpu/libpjrt_cpu.so" "$2/$xla_plugin"
}

# set_up_xla FOLDER: XLA's plugin for processors, in .env/FOLDER. Programs are built with the one in .env/xla.
set_up_xla() {
  set_up_packages xla "$1" "XLA's plugin for processors"
}

# set_up_tool NAME PACKAGE LABEL: a Go program that tools/go.mod pins, in .env/bin.
set_up_tool() {
  GOFLAGS=$plain_flags GOBIN="$state/bin" once "$1" "$3" "$(<"$root/environment/tools/go.sum")" go -C "$root/environment/tools" install -v "$2"
}

# install_kernel builds the kernel from a copy of its source, to which tools/gonb
# adds what this project needs, and the program that it calls.
install_kernel() (
  local tools="$root/environment/tools" source gonb="$state/gonb"
  export GOFLAGS=$plain_flags
  go -C "$tools" mod download github.com/janpfeifer/gonb || return
  source=$(go -C "$tools" list -m -f '{{.Dir}}' github.com/janpfeifer/gonb) || return
  if [[ -d $gonb ]]; then chmod -R u+w "$gonb" && rm -rf "$gonb" || return; fi
  cp -R "$source" "$gonb" && chmod -R u+w "$gonb" || return
  GIT_CEILING_DIRECTORIES=$state git -C "$gonb" apply "$tools/gonb/gonb.patch" || return
  local package
  for package in goexec kernel; do cp "$tools/gonb/$package"/* "$gonb/internal/$package" || return; done
  cp "$tools/go.mod" "$gonb.mod" && cp "$tools/go.sum" "$gonb.sum" && go -C "$root" mod edit -replace "github.com/janpfeifer/gonb=$gonb" "$gonb.mod" || return
  GOBIN="$state/bin" go -C "$tools" install -modfile="$gonb.mod" -v github.com/janpfeifer/gonb golang.org/x/tools/cmd/goimports
)

# fetch_modules: first what our packages need, then all that go.sum has a hash of the files of: also those
# that only tests of other modules import, and "go mod tidy" of a module that imports ours asks for.
fetch_modules() {
  go -C "$root" mod download -x || return
  awk '$2 !~ /\/go\.mod$/ { print $1 "@" $2 }' "$root/go.sum" | xargs go -C "$root" mod download -x
}

# compile NAME LABEL PACKAGE... fills the build cache, so that cells do not wait.
compile() {
  once "$1" "$2" "$GOFLAGS $GOEXPERIMENT $(go env GOCACHE GOROOT) $(<"$root/go.sum")" go -C "$root" build -v "${@:3}"
}

# set_up_rest: what JupyterLab can start without: the language server and a full build
# cache.
set_up_rest() {
  lock -rest
  set_up_tool gopls golang.org/x/tools/gopls "Language server"
  compile compiled "Compiling" ./...
  unlock
}

# set_up_behind: the same beside what comes next, also after its end.
set_up_behind() {
  mkdir -p "$state/log"
  (beside nice "$root/environment/setup" --wait >"$state/log/behind.log" 2>&1)
}

# register_kernel writes the description that Jupyter starts the kernel from. All
# commands of a checkout share it, so it has nothing of what one of them was asked for:
# variables, as those of enter or GOMLX_BACKEND, reach the kernel without being named.
register_kernel() {
  mkdir -p "$state/log" "$JUPYTER_CONFIG_DIR" "$JUPYTER_RUNTIME_DIR"
  # It holds the token, with which anybody could run code as its owner.
  chmod 700 "$JUPYTER_RUNTIME_DIR"
  describe_kernel "$JUPYTER_DATA_DIR/kernels/gonb"
}

# describe_kernel FOLDER NAME...: the description of the kernel, with these variables.
describe_kernel() {
  mkdir -p "$1"
  ROOT="$root" STATE="$state" "$state/venv/bin/python" -S - "${@:2}" >"$1/kernel.json.part" <<'PYTHON'
import json, os, shutil, sys

root, state = os.environ["ROOT"], os.environ["STATE"]
places = [f"{state}/bin", f"{state}/venv/bin", f"{root}/environment/bin", *([os.path.dirname(shutil.which("go"))] if sys.argv[1:] else []), "${PATH}"]
json.dump({
    # Each kernel's module is bound to the checkout, by a go.work of the kernel's
    # own: cells import its packages, and others in the versions of its go.mod.
    # The kernel logs into a file; only what ends it reaches the terminal.
    "argv": [f"{state}/bin/gonb", "--kernel", "{connection_file}", f"--go_work={root}", "--logtostderr=false",
             f"--log_file={state}/log/kernel.log", "--log_file_max_size=10", "--stderrthreshold=3"],
    "display_name": "Go (gonb)",
    "language": "go",
    "env": {"PATH": ":".join(places), "GOWORK": "auto", **{name: os.environ[name] for name in sys.argv[1:] if name in os.environ}},
}, sys.stdout, indent=1)
PYTHON
  mv "$1/kernel.json.part" "$1/kernel.json"
}

# register_for_user FOLDER: describes the kernel in the user's own Jupyter folder, by default where Jupyter has it, for
# what is started without the variables of enter.
register_for_user() {
  local folder=$1
  [[ -n $folder && $folder != "$state/jupyter/data" ]] || folder=$(env -u JUPYTER_DATA_DIR python -c 'import jupyter_core.paths; print(jupyter_core.paths.jupyter_data_dir())')
  folder+=/kernels/gonb
  if [[ -f $folder/kernel.json ]] && ! grep -q -- --go_work= "$folder/kernel.json"; then
    fail "$folder is the kernel of another installation; remove it first"
  fi
  (
    go_offline
    describe_kernel "$folder" GOTOOLCHAIN GOFLAGS GOEXPERIMENT GODEBUG GO111MODULE GOPROXY DENSITYUNCERTAINTY_GOPROXY DENSITYUNCERTAINTY_CHECKOUT PJRT_PLUGIN_LIBRARY_PATH
  )
  echo "Any Jupyter of yours has the kernel Go (gonb) now; removing $folder undoes it."
}

# go_offline: from here on nothing is downloaded; bin/with-network undoes it.
go_offline() {
  DENSITYUNCERTAINTY_GOPROXY=${DENSITYUNCERTAINTY_GOPROXY:-$(go env GOPROXY)}
  export DENSITYUNCERTAINTY_GOPROXY GOPROXY=off
}

# check_data: stops if the folder that DENSITYUNCERTAINTY_DATA names is not there, as every notebook that reads
# images would. Notebooks run in another folder than this one, from which relative paths are meant.
check_data() {
  local name
  for name in DENSITYUNCERTAINTY_DATA DENSITYUNCERTAINTY_CACHE; do
    if [[ -n ${!name:-} && ${!name} != /* ]]; then export "$name=$PWD/${!name}"; fi
  done
  [[ -z ${DENSITYUNCERTAINTY_DATA:-} || -d $DENSITYUNCERTAINTY_DATA ]] ||
    fail "DENSITYUNCERTAINTY_DATA names a folder that is not there: $DENSITYUNCERTAINTY_DATA; name one that is, or none"
}

# copy_notebooks: makes the working copies that ./environment/lab opens, in
# out/lab. One that was changed there stays; others follow the original.
copy_notebooks() {
  local copies="$root/out/lab" original name
  mkdir -p "$copies/.originals"
  for original in "$root"/notebooks/*.ipynb; do
    name=${original##*/}
    # Seen from out/lab the studies are one folder further away.
    sed 's|(\.\./figures/|(../../figures/|g' "$original" >"$copies/.originals/$name.part"
    if [[ ! -e "$copies/$name" ]] || cmp -s "$copies/$name" "$copies/.originals/$name" || cmp -s "$copies/$name" "$copies/.originals/$name.part"; then
      # The copy first: killed in between, the next call finds one that is not its owner's.
      cp "$copies/.originals/$name.part" "$copies/$name.part"
      mv "$copies/$name.part" "$copies/$name"
      mv "$copies/.originals/$name.part" "$copies/.originals/$name"
    elif ! cmp -s "$copies/.originals/$name.part" "$copies/.originals/$name"; then
      printf 'out/lab/%s is yours, and older than notebooks/%s; remove it to get the new one.\n' "$name" "$name"
    fi
  done
}

# make_results OUT: the paper's tables and figures from the stored results, in OUT.
make_results() {
  printf '\nTables and figures from the stored results:\n'
  local kind status=0
  for kind in table figure; do
    go -C "$root" run ./figures/cmd/reproduce "$kind" all --out "$1/${kind}s" || status=1
  done
  ((status == 0)) || echo 'FAIL some tables or figures could not be made' >&2
  return $status
}

# make_pages OUT: pages of all notebooks, those in OUT/notebooks with their outputs,
# of the studies, and the live page, for a browser or a web server, in OUT/html.
make_pages() {
  make_live && python "$root/environment/pages" "$1" "$state/live"
}

# make_live: the program of the live page, and what runs it in a browser, in .env/live.
make_live() {
  mkdir -p "$state/live" &&
    GOOS=js GOARCH=wasm GOFLAGS=$plain_flags go -C "$root" build -trimpath -ldflags='-s -w' -o "$state/live/live.wasm" ./figures/cmd/live &&
    cp -f "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$state/live/"
}

# lock [SUFFIX]: two set-ups at once would undo each other; the second waits for the first.
lock() {
  exec 9>"$state/lock${1:-}"
  if command -v flock >/dev/null && ! flock -n 9; then
    echo 'Waiting for another set-up of this checkout to finish ...'
    flock 9
  fi
}

unlock() {
  exec 9>&-
}

# beside COMMAND: starts it as the leader of a group of processes, so that Ctrl-C can
# end all of it, and goes on; its number is $!. What bash itself would say of a job that
# has ended is not shown.
beside() {
  {
    set -m
    "$@" </dev/null 2>&8 8>&- &
    set +m
  } 8>&2 2>/dev/null
}

# set_up [--xla]: makes everything that notebooks need to open and that is missing or
# out of date, with --xla XLA's plugin for processors too, and enters. Python packages
# and Go programs are made beside each other.
set_up() {
  local job jobs=() status=0
  check_go
  check_python
  mkdir -p "$state"
  lock
  # Before the first part starts: no moment is left in which Ctrl-C would leave it behind.
  trap 'for job in $(jobs -p); do kill -TERM -- "-$job" 2>/dev/null || true; done; exit 130' INT TERM
  beside set_up_python
  jobs+=($!)
  beside set_up_go
  jobs+=($!)
  for job in "${jobs[@]}"; do wait "$job" || status=1; done
  trap - INT TERM
  ((status == 0)) || exit 1
  if [[ " $* " == *' --xla '* ]] || has_xla "$state/xla"; then set_up_xla xla; fi
  enter
  if with_xla; then check_c_compiler XLA "set DENSITYUNCERTAINTY_XLA=0"; fi
  register_kernel
  unlock
}

# set_up_go: the kernel, the modules, and what the first cell imports. The kernel is
# built with the project's settings, so that both share what they have compiled of the
# standard library.
set_up_go() {
  set_up_vectors
  enter
  once kernel "Notebook kernel" "$(cat "$root"/environment/tools/go.sum "$root"/environment/tools/gonb/gonb.patch "$root"/environment/tools/gonb/*/*)" install_kernel
  # The folder of one module stands for all: the cache may have been emptied since.
  once modules "Go modules" "$(<"$root/go.sum") $(go -C "$root" list -m -f '{{.Dir}}' github.com/gomlx/gomlx)" fetch_modules
  compile first "What a first cell needs" ./datasets ./environment ./environment/notebook
}
