#!/bin/sh
# Runs the experiments with what lies in this folder.
set -eu

help() {
  cat <<'HELP'
Usage: ./run.sh [--device N] [--tf32] [--download] COMMAND [ARGUMENT]...

Calls the program "reproduce" of this bundle, with an NVIDIA GPU where there is
one, otherwise on the processor. Commands are described by "./run.sh help":

  ./run.sh list                        what there is, and what is done
  ./run.sh run SET [--scale quick]     run what is missing; again to go on
  ./run.sh table all                   tables from the results
  ./run.sh with PROGRAM [ARGUMENT]...  another program, with the same settings

  --device N   the GPU to use, 0 for the first. Several can work at once on
               one set: start ./run.sh once for each.
  --tf32       on a GPU, round the factors of products to 10 bits: faster
  --download   if no plugin for XLA is found, download one first, into this
               folder: for a GPU, some gigabytes, or without one for the
               processor. Needs the network.
  --help       this text

Results are written to the folder results here, unless --store names another.
Ctrl-C, or kill, stops; the same command goes on.

Variables:
  GOMLX_BACKEND          where to compute, as go:ops_sequential, xla:cuda or
                         xla:/path/to/plugin.so. Without it: on a GPU the CUDA
                         plugin of a Python environment with JAX (the active one,
                         that of python3, or the system's) or one that is
                         installed; else an installed plugin for the processor;
                         else pure Go. A plugin that is there but does not start
                         is an error.
  DENSITYUNCERTAINTY_DATA  the folder of data, if not that of this bundle
HELP
}

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

usage_error() {
  printf 'error: %s\nSee ./run.sh --help\n' "$*" >&2
  exit 2
}

say() {
  printf 'run.sh: %s\n' "$*" >&2
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
download=
tf32=false
while [ $# -gt 0 ]; do
  case $1 in
    --device)
      [ $# -gt 1 ] || usage_error '--device needs a number'
      device=$2
      shift
      ;;
    --device=*) device=${1#--device=} ;;
    --download) download=yes ;;
    --tf32) tf32=true ;;
    -h | --help)
      help
      exit
      ;;
    -*) usage_error "unknown argument \"$1\"" ;;
    *) break ;;
  esac
  shift
done
[ $# -gt 0 ] || usage_error 'no command'
if [ -n "${device+given}" ]; then
  case $device in
    '' | *[!0-9]*) usage_error "--device: \"$device\" is not a number" ;;
  esac
  export CUDA_VISIBLE_DEVICES="$device"
fi

has_gpu() {
  [ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || nvidia-smi -L >/dev/null 2>&1
}

# sites: the folders of packages of the Python environments here, the active one
# first.
sites() {
  for environment in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
    [ -z "$environment" ] || printf '%s\n' "$environment"/lib/python3*/site-packages
  done
  for interpreter in python3 python; do
    "$interpreter" -c 'import sys
for folder in sys.path:
    if folder.endswith("-packages"):
        print(folder)' 2>/dev/null || true
  done
  for folder in ${HOME:+"$HOME"/.local/lib/python3*/site-packages} /usr/local/lib/python3*/dist-packages \
    /usr/local/lib/python3*/site-packages /usr/lib/python3/dist-packages /opt/conda/lib/python3*/site-packages; do
    printf '%s\n' "$folder"
  done
}

# find_plugin: the path of the CUDA plugin in the first environment that has one.
find_plugin() {
  sites | while IFS= read -r site; do
    for plugin in "$site/jax_plugins/xla_cuda13/xla_cuda_plugin.so" "$site/jax_plugins/xla_cuda12/xla_cuda_plugin.so"; do
      if [ -f "$plugin" ]; then
        printf '%s\n' "$plugin"
        return
      fi
    done
  done
}

# use_plugin PLUGIN: compute with it, and with CUDA's libraries and compiler in the
# same environment.
use_plugin() {
  libraries=
  for folder in "${1%/jax_plugins/*}"/nvidia/*/; do
    [ ! -d "${folder}lib" ] || libraries=$libraries${libraries:+:}${folder}lib
    case ${XLA_FLAGS:-} in
      *--xla_gpu_cuda_data_dir*) ;;
      *) [ ! -d "${folder}nvvm" ] || export XLA_FLAGS="${XLA_FLAGS:+$XLA_FLAGS }--xla_gpu_cuda_data_dir=${folder%/}" ;;
    esac
  done
  # XLA's Go side looks for the libraries in one other place, and warns at length.
  [ -z "$libraries" ] || export GOPJRT_CUDA_CHECKS="${GOPJRT_CUDA_CHECKS:-no}"
  export GOMLX_BACKEND="xla:$1,tf32=$tf32"
  [ -z "$libraries" ] || export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  say "CUDA plugin $1"
}

# own_plugin KIND: the path of a plugin of XLA's own for cuda or cpu, where the
# program looks; nothing if there is none.
own_plugin() {
  search=$PJRT_PLUGIN_LIBRARY_PATH:
  while [ -n "$search" ]; do
    for file in "${search%%:*}"/pjrt_c_api_"$1"_plugin.so "${search%%:*}"/pjrt_c_api_"$1"_v*_plugin.so \
      "${search%%:*}"/pjrt[-_]plugin[-_]"$1".so "${search%%:*}"/pjrt[-_]plugin[-_]"$1"_v*.so; do
      if [ -f "$file" ]; then
        printf '%s\n' "$file"
        return
      fi
    done
    search=${search#*:}
  done
}

# download_plugin: CUDA 13 needs a driver of version 580.
download_plugin() {
  kind=cpu
  if has_gpu; then
    kind=cuda12
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    case ${driver%%.*} in
      '' | *[!0-9]*) ;;
      *) [ "${driver%%.*}" -lt 580 ] || kind=cuda13 ;;
    esac
  fi
  say "downloading the plugin $kind into $here/plugin"
  rm -rf -- "$here/plugin"
  # The installer keeps small files in the home folder, or that of temporaries.
  HOME=${HOME:-${TMPDIR:-/tmp}} "$here/bin/xlaplugin" "$kind" "$here/plugin" ||
    fail 'the plugin could not be downloaded; without --download it goes without'
  : >"$here/plugin/complete"
  use_own_plugins
}

# What the program looks through for plugins, the bundle's own first.
plugins=${PJRT_PLUGIN_LIBRARY_PATH:-/usr/local/lib/go-xla:/usr/local/lib/go-xla/nvidia${HOME:+:$HOME/.local/lib/go-xla:$HOME/.local/lib/go-xla/nvidia}}
use_own_plugins() {
  export PJRT_PLUGIN_LIBRARY_PATH="$plugins"
  if [ -f "$here/plugin/complete" ]; then
    PJRT_PLUGIN_LIBRARY_PATH=$here/plugin:$here/plugin/nvidia:$plugins
  fi
}
use_own_plugins

# choose_backend: where to compute, told to all programs, of which some would choose
# otherwise. The order is theirs (environment.OpenFor), but that JAX's plugin, of
# which they do not know, comes first.
choose_backend() {
  if has_gpu; then
    plugin=$(find_plugin)
    if [ -n "$plugin" ]; then
      use_plugin "$plugin"
      return
    fi
    plugin=$(own_plugin cuda)
    if [ -z "$plugin" ] && [ -n "$download" ]; then
      download_plugin
      plugin=$(own_plugin cuda)
    fi
    if [ -n "$plugin" ]; then
      export GOMLX_BACKEND="xla:cuda,tf32=$tf32"
      say "CUDA plugin $plugin"
      return
    fi
    say 'there is an NVIDIA GPU, but no CUDA plugin was found: computing on the processor. Install JAX with CUDA, or try --download.'
  elif [ -z "$(own_plugin cpu)" ]; then
    if [ -n "$download" ]; then
      download_plugin
    else
      say 'no NVIDIA GPU: computing on the processor.'
    fi
  fi
  [ -z "$(own_plugin cpu)" ] || export GOMLX_BACKEND=xla:cpu
}

# choose_program: the program to run, and where it is to compute.
choose_program() {
  asked=${GOMLX_BACKEND:-}
  if [ "$tf32" = true ]; then
    case $asked in
      '') ;;
      xla:*cuda*)
        asked=$(printf '%s' "$asked" | sed 's/,tf32=[a-z]*//')
        export GOMLX_BACKEND="$asked,tf32=true"
        ;;
      *) usage_error "--tf32 is for a GPU, and GOMLX_BACKEND=$asked is none" ;;
    esac
  fi
  if [ -z "$asked" ]; then
    choose_backend
  elif [ -n "$download" ]; then
    say "nothing is downloaded, as GOMLX_BACKEND=$asked says what to use."
  fi
  program=$here/bin/reproduce-xla
  if complaint=$("$program" help 2>&1 >/dev/null); then return; fi
  # It needs the C library that it was built with, or a newer one.
  reason="the program with XLA does not start here; it needs glibc $(cat "$here/glibc") or newer"
  if version=$(getconf GNU_LIBC_VERSION 2>/dev/null); then
    reason="$reason, and this is $version"
  fi
  reason="$reason ($(printf '%s\n' "$complaint" | tail -n 1))"
  [ -n "$asked" ] || unset GOMLX_BACKEND
  case ${GOMLX_BACKEND:-} in
    '' | go | go:*) ;;
    *) fail "$reason, and GOMLX_BACKEND=$GOMLX_BACKEND asks for XLA" ;;
  esac
  say "$reason: computing on the processor."
  program=$here/bin/reproduce-go
}

case $1 in
  with) [ $# -gt 1 ] || usage_error 'with needs a program' ;;
esac
case $1 in
  # These compute nothing.
  help | list | measure | table | figure | fill | choose | export) program=$here/bin/reproduce-go ;;
  *) choose_program ;;
esac

if [ -z "${DENSITYUNCERTAINTY_DATA:-}" ] && [ -d "$here/data" ]; then # a bundle can be made without data
  export DENSITYUNCERTAINTY_DATA="$here/data"
fi
export DENSITYUNCERTAINTY_CACHE="${DENSITYUNCERTAINTY_CACHE:-$here/cache}"
export DENSITYUNCERTAINTY_VERSION="${DENSITYUNCERTAINTY_VERSION:-$(cat "$here/version")}"

if [ "$1" = with ]; then
  shift
  # Tests and benchmarks, which choose nothing by themselves: as image runs do.
  export GOMLX_BACKEND="${GOMLX_BACKEND:-go:parallelism=-1}"
  exec "$@"
fi

names_store() {
  for argument; do
    case $argument in
      --store | --store=*) return 0 ;;
    esac
  done
  return 1
}
case $1 in
  list | run | again | measure | table | figure | fill | choose | export)
    if ! names_store "$@"; then
      mkdir -p -- "$here/results"
      set -- "$@" --store "$here/results"
    fi
    ;;
esac
exec "$program" "$@"
