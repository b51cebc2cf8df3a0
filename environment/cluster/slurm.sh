#!/bin/bash
#SBATCH --job-name=densityuncertainty
#SBATCH --array=0-3
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120
# Every task starts the same command on one store, and takes what no other task is at. From the checkout, with
# "go build -o reproduce ./figures/cmd/reproduce" done and more options for sbatch, such as --gres=gpu:1, as you like:
#   sbatch --time=8:00:00 environment/cluster/slurm.sh NAME --store /shared/runs
# A task that is preempted, or whose time is nearly up, saves a checkpoint, is queued again and resumes from there.
trap 'kill -TERM "$program"' TERM
"${REPRODUCE:-./reproduce}" run "$@" &
program=$!
wait "$program"
status=$?
while kill -0 "$program" 2>/dev/null; do # a signal ends the waiting, not the program
  wait "$program"
  status=$?
done
case $status in 75 | 143) scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" ;; esac
exit "$status"
