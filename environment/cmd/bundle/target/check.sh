#!/bin/sh
# Says whether the experiments compute rightly on this machine, how fast, and what
# they find there.
set -eu

help() {
  cat <<'HELP'
Usage: ./check.sh [--small] [--processes N] STEP...

Three steps, in this order on a new machine; each can be given again, and the
first two write to results/check. Needs a bundle made with --checks.

  correct   the tests of layers, networks, training and prediction, in float32;
            with a GPU again with TF32, where what fails tells how far off it is
            (10 minutes)
  speed     images per second of training steps, beside PyTorch's where python3
            has it: plain and density layers, float32, TF32, bfloat16, batches of
            128 and 512, 1, 8 and 32 steps in an execution, 1 to 4 processes, and
            the Wide ResNet (8 minutes)
  compare   a plain ResNet-14, Rank-1, density with constant and with LDL energy
            on CIFAR-10, 60 epochs, two seeds; result lines and predictions go to
            results (10 minutes or more; again to go on)

  --small         a tenth of it, to try the steps on a processor
  --processes N   how many runs of "compare" share the device (4)
  --help          this text

Where it computes, run.sh says; see ./run.sh --help.
HELP
}

usage_error() {
  printf 'error: %s\nSee ./check.sh --help\n' "$*" >&2
  exit 2
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=$here/results/check
small=
processes=4
while [ $# -gt 0 ]; do
  case $1 in
    --small) small=yes ;;
    --processes)
      [ $# -gt 1 ] || usage_error '--processes needs a number'
      processes=$2
      shift
      ;;
    --processes=*) processes=${1#--processes=} ;;
    -h | --help)
      help
      exit
      ;;
    -*) usage_error "unknown argument \"$1\"" ;;
    *) break ;;
  esac
  shift
done
case $processes in
  '' | 0* | *[!0-9]*) usage_error "--processes: \"$processes\" is not a number of at least 1" ;;
esac
[ $# -gt 0 ] || usage_error 'no step'
for step; do
  case $step in
    correct | speed | compare) ;;
    *) usage_error "unknown step \"$step\"" ;;
  esac
done
mkdir -p -- "$out"

# gpu: whether it computes on one.
gpu() {
  "$here/run.sh" with sh -c 'case ${GOMLX_BACKEND:-} in *cuda*) exit 0 ;; *) exit 1 ;; esac' 2>/dev/null
}

# tests PRECISION [OPTION]: all test programs, with run.sh's option, and a line for
# each. On a GPU, where most of the time goes into compiling for it on one core, all
# at once.
tests() {
  precision=$1
  shift
  rm -f "$out/correct-$precision"-*
  find "$here/checks" -name '*.test' | LC_ALL=C sort | {
    while IFS= read -r program; do
      if gpu; then
        one_test "$precision" "$program" "$@" &
      else
        one_test "$precision" "$program" "$@"
      fi
    done
    wait
  }
}

one_test() {
  precision=$1 program=$2
  shift 2
  name=${program#"$here"/checks/}
  name=${name%.test}
  log=$out/correct-$precision-$(printf '%s' "$name" | tr / -).txt
  start=$(date +%s)
  verdict=FAILED
  if (cd "$(dirname "$program")" && "$here/run.sh" "$@" with timeout 500 "$program" -test.v ${small:+-test.short -test.run 'Released|Recorded'}) >"$log" 2>&1; then
    verdict=passed
  fi
  printf '%s %s %s: %d tests passed, %d failed, %d left out, %d s\n' "$precision" "$name" "$verdict" \
    "$(grep -c '^ *--- PASS' "$log" || true)" "$(grep -c '^ *--- FAIL' "$log" || true)" \
    "$(grep -c '^ *--- SKIP' "$log" || true)" "$(($(date +%s) - start))"
}

correct() {
  tests float32 | tee "$out/correct-float32.txt"
  if gpu; then
    tests tf32 --tf32 | tee "$out/correct-tf32.txt"
  fi
  ! grep -q ' FAILED: ' "$out/correct-float32.txt"
}

# steps NAME TF32 OPTION...: one table of speeds. One that fails stops nothing.
steps() {
  log=$out/speed-$1.txt
  tf32=$2
  shift 2
  "$here/run.sh" ${tf32:+--tf32} with python3 "$here/checks/step_pytorch.py" "$@" >"$log" 2>&1 || true
  cat "$log"
}

speed() {
  test=$here/checks/dul/train/train.test
  if gpu; then
    device=cuda threads=16 count=100 rounds=3
  else
    device=cpu threads=$(getconf _NPROCESSORS_ONLN) count=${small:+3}
    count=${count:-20} rounds=${small:+1}
    rounds=${rounds:-5}
  fi
  torch="--device $device --threads $threads"
  python3 -c 'import torch' 2>/dev/null || torch='--without-pytorch'
  # shellcheck disable=SC2086 # several arguments
  set -- --program "$test" --count "$count" --rounds "$rounds" $torch
  if ! gpu; then
    steps float32 '' "$@" --kinds plain,density,detached
    steps samples '' "$@" --sample --kinds plain,density
    return
  fi
  steps float32 '' "$@" --kinds plain,density,detached,mixture
  steps samples '' "$@" --sample --kinds plain,density
  steps tf32 yes "$@" --precision tf32 --kinds plain,density
  steps bfloat16 '' "$@" --precision bfloat16 --kinds plain,density
  steps compiled '' "$@" --compile --rounds 1 --kinds plain,density
  steps batch512 '' "$@" --batch 512 --rounds 1 --kinds plain,density
  for several in 8 32; do
    steps "executions-of-$several" '' --program "$test" --count 128 --rounds 2 --without-pytorch --steps "$several" --kinds plain,density
  done
  steps wrn28x10 '' --program "$test" --network wrn28x10 --count 20 --rounds 1 $torch --kinds plain,density
  for many in 2 4; do
    i=0
    while [ $i -lt $many ]; do
      steps "processes-$many-of-$i" '' --program "$test" --count 200 --rounds 1 --without-pytorch --kinds density >/dev/null &
      i=$((i + 1))
    done
    wait
    printf '%s processes at once:\n' "$many"
    cat "$out/speed-processes-$many"-of-*.txt
  done
}

compare() {
  set -- --methods deterministic,rank1,density-constant,density --set decay=all --keep
  if [ -n "$small" ]; then
    set -- "$@" --epochs 1 --train-n 1000 --test-n 200 --held-out 100 --samples 2 --seeds 0
  else
    set -- "$@" --epochs 60
  fi
  devices=0
  i=1
  while [ $i -lt "$processes" ]; do
    devices=$devices,0
    i=$((i + 1))
  done
  ! gpu || set -- "$@" --devices "$devices"
  "$here/run.sh" run processor "$@"
}

[ -d "$here/checks" ] || {
  printf 'error: this bundle was made without --checks\n' >&2
  exit 1
}
for step; do
  "$step"
done
