package jobs

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

func TestJobArrayScript(t *testing.T) {
	job := JobArray{Name: "images", Folder: "/shared/job's", Program: "/opt/reproduce", Partition: "gpu", Gres: "gpu:1", CPUs: 4, Time: "04:00:00", Parallel: 2,
		Lines: []string{"--account=me"}, Environment: []string{"DATA=/a b=c"}, Flags: []string{"--keep"}}
	want := `#!/bin/bash
#SBATCH --job-name=images
#SBATCH --array=0-2%2
#SBATCH --output=/shared/job's/logs/%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:TERM@180
#SBATCH --time=04:00:00
#SBATCH --partition=gpu
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=4
#SBATCH --account=me

# One task for each line of tasks.jsonl. To submit this again is safe: a finished result is not computed
# twice, an unfinished one goes on from its last checkpoint.
set -u
export DATA='/a b=c'

# The time is nearly up, or a more important job wants the node: the program saves and ends.
program=
stopped=0
trap 'stopped=1; interrupted=1; if [ -n "$program" ]; then kill -TERM "$program"; fi' TERM
'/opt/reproduce' task '/shared/job'\''s' "$SLURM_ARRAY_TASK_ID" '--keep' &
program=$!
if [ "$stopped" -eq 1 ]; then
    kill -TERM "$program"
fi
interrupted=1
while [ "$interrupted" -eq 1 ]; do # a signal ends the waiting, not the program
    interrupted=0
    wait "$program"
    status=$?
done
if [ "$status" -eq 75 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$status"
`
	if got := job.text(3); got != want {
		t.Errorf("the script is\n%s\nwant\n%s", got, want)
	}
	if short := (JobArray{Name: "n", Folder: "f", Program: "p"}).text(1); strings.Contains(short, "partition") || strings.Contains(short, "gres") || !strings.Contains(short, "--array=0-0\n") {
		t.Errorf("the script without options is\n%s", short)
	}
}

func TestTasksOfAJobArray(t *testing.T) {
	job := JobArray{Name: "n", Folder: filepath.Join(t.TempDir(), "job"), Program: "p"}
	want := batches()
	for range 2 { // the same tasks may be written again
		must.Do(t, job.Write(want))
	}
	for i := range want {
		got, err := Task(job.Folder, i)
		if err != nil || !reflect.DeepEqual(got, want[i]) {
			t.Errorf("task %d is %v (error %v), want %v", i, got, err, want[i])
		}
	}
	if err := job.Write(want[1:]); err == nil || !strings.Contains(err.Error(), "other tasks") {
		t.Errorf("other tasks in the same folder: %v", err)
	}
	for _, index := range []int{-1, len(want)} {
		if _, err := Task(job.Folder, index); err == nil || !strings.Contains(err.Error(), "no task") {
			t.Errorf("task %d: %v", index, err)
		}
	}
	if err := job.Write(nil); err == nil {
		t.Error("a job array without tasks was written")
	}
	must.Do(t, os.WriteFile(filepath.Join(job.Folder, TasksName), []byte("[{\"study\":\"uci\"}]\n"), 0o600))
	if _, err := Task(job.Folder, 0); err == nil || !strings.Contains(err.Error(), TasksName+":1") {
		t.Errorf("a task that is no experiment: %v", err)
	}
}

// The script passes SIGTERM on, waits for the program to save, and asks to be requeued.
func TestScriptRequeues(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	dir := t.TempDir()
	program := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte("#!"+bash+"\n"+text), 0o755))
		return path
	}
	program("scontrol", "echo \"$@\" >> "+filepath.Join(dir, "requeued")+"\n")
	log := filepath.Join(dir, "requeued")
	for _, c := range []struct {
		name     string
		body     string
		status   int
		requeued bool
	}{
		// Slurm's signal comes when the program has just begun, and once more.
		{"stopped", "trap 'trap : TERM; kill -TERM $PPID; sleep 0.2; exit 75' TERM\nkill -TERM $PPID\nfor i in {1..500}; do sleep 0.02; done\n", 75, true},
		{"finished", "exit 0\n", 0, false},
		{"failed", "exit 1\n", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Do(t, os.RemoveAll(log))
			job := JobArray{Name: "n", Folder: dir, Program: program("program", c.body)}
			script := program("script", job.text(1))
			cmd := exec.Command(bash, script)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SLURM_ARRAY_TASK_ID=0", "SLURM_ARRAY_JOB_ID=7")
			out, err := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("status %d (%v), want %d\n%s", got, err, c.status, out)
			}
			requeued, err := os.ReadFile(log)
			if (err == nil) != c.requeued || c.requeued && string(requeued) != "requeue 7_0\n" {
				t.Errorf("requeued %q (%v), want %v", requeued, err, c.requeued)
			}
		})
	}
}
