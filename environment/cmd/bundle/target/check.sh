#!/bin/sh
# Says whether the experiments compute rightly on this machine, how fast, and what
# they find there.
set -eu

help() {
  cat <<'HELP'
Usage: ./check.sh [--small] [--rehearse] [--processes N] [--minutes N] STEP...

Three steps, in this order on a new machine; each can be given again, and all
write to results/check. Needs a bundle made with --checks.

  correct   the tests of layers, networks, training and prediction, in float32;
            with XLA without the finite differences, whose graphs are those of
            other tests. With a GPU again with TF32, where what fails tells how
            far off it is. A convolution and a short training are tested in
            bfloat16, too: a line says how far off the training ends. On a GPU 8
            minutes at worst
  speed     images per second of training steps, beside PyTorch's where python3
            has it. With a GPU: plain and density layers, float32, TF32, bfloat16,
            batches of 128 and 512, 1 to 4 processes, the Wide ResNet, samples, 1,
            8 and 32 steps in an execution, the card's memory, and what the
            compiler made of a step; 8 minutes at worst, the last tables give way
  compare   the set "gpu": ResNet-14, a plain one, Rank-1, density with constant
            and with LDL energy on CIFAR-10, 60 epochs, two seeds, as in the text
            and as in the released code. It stops in time and keeps what it has:
            the same call goes on

  --small         a tenth of it, to try the steps on a processor
  --rehearse      in the step "speed", without a GPU, every table that a GPU gets but
                  that of TF32, each of a few training steps: what fails there would
                  fail on a GPU too. Half an hour on two cores
  --processes N   how many runs of "compare" share the device (4)
  --minutes N     after how many "compare" is stopped (9)
  --help          this text

At the end there is a line for each step, and the status is 0 only if all of them
are done. To bring back: results/*.jsonl, results/predictions, results/check.
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
rehearse=
processes=4
minutes=9
while [ $# -gt 0 ]; do
  case $1 in
    --small) small=yes ;;
    --rehearse) rehearse=yes ;;
    --processes | --minutes)
      [ $# -gt 1 ] || usage_error "$1 needs a number"
      case $1 in
        --processes) processes=$2 ;;
        *) minutes=$2 ;;
      esac
      shift
      ;;
    --processes=*) processes=${1#--processes=} ;;
    --minutes=*) minutes=${1#--minutes=} ;;
    -h | --help)
      help
      exit
      ;;
    -*) usage_error "unknown argument \"$1\"" ;;
    *) break ;;
  esac
  shift
done
for number in "processes $processes" "minutes $minutes"; do
  case ${number#* } in
    '' | 0* | *[!0-9]*) usage_error "--${number%% *}: \"${number#* }\" is not a number of at least 1" ;;
  esac
done
[ $# -gt 0 ] || usage_error 'no step'
for step; do
  case $step in
    correct | speed | compare) ;;
    *) usage_error "unknown step \"$step\"" ;;
  esac
done
[ -d "$here/checks" ] || {
  printf 'error: this bundle was made without --checks\n' >&2
  exit 1
}
mkdir -p -- "$out"

# Steps are in float32 but for those that are called TF32.
case ${GOMLX_BACKEND:-} in
  *tf32=true*) usage_error "GOMLX_BACKEND=$GOMLX_BACKEND asks for TF32 in all steps; leave that out" ;;
  *tf32=*) ;;
  xla:*cuda*) export GOMLX_BACKEND="$GOMLX_BACKEND,tf32=false" ;;
esac

backend=$("$here/run.sh" with sh -c 'printf %s "$GOMLX_BACKEND"')

# gpu: whether it computes on one.
gpu() {
  case $backend in *cuda*) return 0 ;; *) return 1 ;; esac
}

# about [OPTION]: the line that says what is computed on with run.sh's option, with
# which every file begins.
about() {
  # shellcheck disable=SC2016 # for the other shell
  "$here/run.sh" "$@" with sh -c 'printf "%s; backend %s, version %s; " "$(date -u "+%Y-%m-%d %H:%M UTC")" "$GOMLX_BACKEND" "$DENSITYUNCERTAINTY_VERSION"' 2>/dev/null
  if gpu; then
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sed 's/, /, driver /; s/$/; /' | tr -d '\n'
  fi
  printf '%s processors\n' "$(getconf _NPROCESSORS_ONLN)"
}

# limited SECONDS COMMAND...: stops it by SIGTERM then. Ctrl-C stops it, too.
limited() {
  timeout --foreground -k 5 "$@"
}

# tests PRECISION [OPTION]: all test programs, with run.sh's option, and a line for
# each. On a GPU, where most of the time goes into compiling for it on one core, all
# at once.
tests() {
  precision=$1
  shift
  rm -f "$out/correct-$precision"*
  about "$@" | tee "$out/correct-$precision.txt"
  find "$here/checks" -name '*.test' | LC_ALL=C sort | {
    while IFS= read -r program; do
      if gpu; then
        one_test "$precision" "$program" "$@" &
      else
        one_test "$precision" "$program" "$@"
      fi
    done
    wait
  } | tee -a "$out/correct-$precision.txt"
  sed -n 's/^.*_test.go:[0-9]*: bfloat16: /bfloat16: /p' "$out/correct-$precision"-*.txt | tee -a "$out/correct-$precision.txt"
}

one_test() {
  precision=$1 program=$2
  shift 2
  name=${program#"$here"/checks/}
  name=${name%.test}
  log=$out/correct-$precision-$(printf '%s' "$name" | tr / -).txt
  short=
  case $backend in xla*) short=yes ;; esac
  if gpu; then limit=220; else limit=1800; fi
  head -n 1 "$out/correct-$precision.txt" >"$log"
  start=$(date +%s)
  status=0
  (cd "$(dirname "$program")" && limited "$limit" "$here/run.sh" "$@" with "$program" -test.v \
    ${short:+-test.short} ${small:+-test.short -test.run 'Released|Recorded'}) >>"$log" 2>&1 || status=$?
  case $status in
    0) verdict=passed ;;
    124 | 137) verdict="FAILED, cut off after $limit s" ;;
    *) verdict=FAILED ;;
  esac
  printf '%s %s %s: %d tests passed, %d failed, %d left out, %d s\n' "$precision" "$name" "$verdict" \
    "$(grep -c '^ *--- PASS' "$log" || true)" "$(grep -c '^ *--- FAIL' "$log" || true)" \
    "$(grep -c '^ *--- SKIP' "$log" || true)" "$(($(date +%s) - start))"
}

correct() {
  tests float32
  if gpu; then
    tests tf32 --tf32
  fi
  failed=$(sed -n 's/^float32 \(.*\) FAILED.*/\1/p' "$out/correct-float32.txt" | tr '\n' ' ')
  grep -q ' passed: ' "$out/correct-float32.txt" || failed='all '
  [ -z "$failed" ] || verdict="failed: ${failed% }"
}

# steps NAME SECONDS OPTION...: one table of speeds within so many seconds, if so many
# are left. One that fails stops nothing.
steps() {
  name=$1 limit=${rehearse:+1800} log=$out/speed-$1.txt
  limit=${limit:-$2}
  shift 2
  left=$((deadline - $(date +%s)))
  [ "$limit" -lt "$left" ] || limit=$left
  if [ "$limit" -lt 15 ]; then
    printf '%s: not begun, no time is left\n' "$name"
    lacking="$lacking, $name not begun"
    return
  fi
  memory=$out/memory-$name.txt poll=
  if gpu; then
    about >"$memory"
    nvidia-smi --query-gpu=timestamp,memory.used --format=csv,noheader,nounits -l 1 >>"$memory" 2>&1 &
    poll=$!
  fi
  status=0
  limited "$limit" python3 "$here/checks/step_pytorch.py" "$@" >"$log" 2>&1 || status=$?
  if [ -n "$poll" ]; then
    { kill "$poll" && wait "$poll"; } 2>/dev/null || true
    sed -n '2,$s/.*, //p' "$memory" | sort -n | sed -n '$s/.*/memory of the card: & MiB at most/p' >>"$log"
  fi
  case $status in
    0) ;;
    124 | 137)
      printf 'cut off after %s s\n' "$limit" >>"$log"
      lacking="$lacking, $name cut off"
      ;;
    *) lacking="$lacking, $name failed" ;;
  esac
  printf '%s: ' "$name"
  cat "$log"
}

# compiled: what the compiler makes of a training step with density layers, and how
# often that changes the order of a tensor in memory.
compiled() {
  flags=${XLA_FLAGS:-} dump=$(mktemp -d)
  export XLA_FLAGS="${flags:+$flags }--xla_dump_to=$dump --xla_dump_hlo_as_text"
  steps hlo 40 "$@"
  export XLA_FLAGS="$flags"
  # shellcheck disable=SC2012 # names of letters and digits
  largest=$(ls -S "$dump"/*after_optimizations.txt 2>/dev/null | head -n 1)
  if [ -n "$largest" ]; then
    {
      about | sed 's,^,// ,'
      cat "$largest"
    } >"$out/hlo-density.txt"
    printf 'the compiled step: %d transposes, %d copies, %d convolutions\n' "$(grep -c ' transpose(' "$largest" || true)" \
      "$(grep -c ' copy(' "$largest" || true)" "$(grep -cE ' convolution\(|custom_call_target="__cudnn\$conv' "$largest" || true)" | tee -a "$out/speed-hlo.txt"
  fi
  rm -rf "$dump"
}

speed() {
  # Of the steps to time: in the tables of several processes, of several steps in an
  # execution, of the Wide ResNet and of what the compiler made.
  long=1000 several=320 wide='--count 20' short=5
  if gpu; then
    device=cuda threads=16 count=300 rounds=1 deadline=$(($(date +%s) + 460))
  else
    device=cpu threads=$(getconf _NPROCESSORS_ONLN) count=${small:+3}
    count=${count:-20} rounds=${small:+1} deadline=$(($(date +%s) + 7200))
    rounds=${rounds:-5}
    if [ -n "$rehearse" ]; then
      count=3 rounds=1 long=3 several=32 wide='--count 1 --batch 2' short=2
    fi
  fi
  lacking=
  torch="--device $device --threads $threads"
  if ! reason=$(limited 60 python3 -c "import torch; torch.zeros(1, device='$device')" 2>&1); then
    printf 'without PyTorch: %s\n' "$(printf '%s\n' "$reason" | tail -n 1)"
    torch=--without-pytorch
  fi
  set -- --run "$here/run.sh" --program "$here/checks/dul/train/train.test" --rounds "$rounds"
  # shellcheck disable=SC2086 # several arguments
  if ! gpu && [ -z "$rehearse" ]; then
    steps float32 3600 "$@" --count "$count" $torch --kinds plain,density,detached
    steps samples 3600 "$@" --count "$count" $torch --sample --kinds plain,density
  else
    # What matters most comes first. Most of the time goes into compiling, so that
    # there is one round, and many steps in it.
    steps float32 120 "$@" --count "$count" $torch --kinds density,plain,detached,mixture
    steps bfloat16 90 "$@" --count "$count" $torch --precision bfloat16 --kinds density,plain,mixture
    steps batch512 90 "$@" --count "$count" $torch --batch 512 --kinds density,plain,mixture
    if gpu; then
      steps tf32 60 "$@" --count "$count" $torch --precision tf32 --kinds density,plain
    fi
    for many in 4 2 3; do
      steps "processes-$many" 60 "$@" --count "$long" --without-pytorch --processes $many --kinds density
    done
    steps wrn28x10 90 "$@" $wide --without-pytorch --network wrn28x10 --kinds density,plain
    compiled "$@" --count "$short" --without-pytorch --kinds density
    steps samples 60 "$@" --count "$count" $torch --sample --kinds density,plain
    steps executions-of-8 80 "$@" --count "$several" --without-pytorch --steps 8 --kinds density,plain
    if [ "$torch" != --without-pytorch ]; then
      steps wrn28x10-pytorch 40 $wide --rounds 1 $torch --network wrn28x10 --kinds density,plain
      steps compiled-pytorch 90 --count "$count" --rounds 1 $torch --compile --kinds density,plain
    fi
    steps executions-of-32 90 "$@" --count "$several" --without-pytorch --steps 32 --kinds plain,density
  fi
  [ -z "$lacking" ] || verdict="not all: ${lacking#, }"
}

compare() {
  set --
  if [ -n "$small" ]; then
    set -- --set Recipe.Epochs=1 --set Task.Data.TrainN=1000 --set Task.Data.TestN=200 --set Task.Data.HeldOut=100 --seeds 0
  fi
  ! gpu || set -- "$@" --gpu
  log=$out/compare.txt
  printf 'compare: what it says goes to %s\n' "$log"
  about >>"$log"
  # Several at a time share the store, and so the work.
  programs=
  i=0
  while [ $i -lt "$processes" ]; do
    # Longer than "limited" waits: runs save what they have.
    timeout --foreground -k 45 $((60 * minutes)) "$here/run.sh" run gpu "$@" >>"$log" 2>&1 &
    programs="$programs $!"
    i=$((i + 1))
    gpu || break
  done
  status=0
  for program in $programs; do
    wait "$program" || status=$?
  done
  tail -n 20 "$log"
  case $status in
    0) ;;
    75 | 124 | 137) verdict="stopped after $minutes minutes, the same call goes on" ;;
    *) verdict=failed ;;
  esac
}

lines=
all=0
for step; do
  verdict='done'
  start=$(date +%s)
  "$step" || verdict=failed
  [ "$verdict" = 'done' ] || all=1
  lines="$lines$step: $verdict, $(($(date +%s) - start)) s
"
done
printf '\n%s' "$lines"
exit $all
