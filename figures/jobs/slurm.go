package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/results"
)

// A JobArray is a Slurm job array with one task for each batch of experiments. A task writes to folders of
// its own, skips what it finished before, and goes on from its checkpoints when it is requeued.
type JobArray struct {
	Name      string   // of the job
	Folder    string   // holds script, tasks, logs, results and checkpoints; all nodes must see it
	Program   string   // path of the program "reproduce"
	Partition string   // "" for the cluster's default
	Gres      string   // generic resources of a task, for example "gpu:1"; "" for none
	CPUs      int      // of a task; 0 for the cluster's default
	Time      string   // limit of a task, for example "04:00:00"; "" for the cluster's default
	Parallel  int      // tasks at a time; 0 for no limit
	Lines     []string // further lines for sbatch, without "#SBATCH "
	// Environment are variables to set, as name=value.
	Environment []string
	// Flags are what a task is given besides its number.
	Flags []string
}

// The files in a job array's folder: TasksName has the experiments of a task in each line.
const (
	scriptName = "job.sh"
	TasksName  = "tasks.jsonl"
)

// warning is how many seconds before the end of its time a task is told to save and stop.
const warning = 180

// Requeue is the exit status of a task that was stopped and wants to go on (EX_TEMPFAIL of sysexits.h).
const Requeue = 75

// Script is the path of the script for sbatch.
func (j JobArray) Script() string { return filepath.Join(j.Folder, scriptName) }

// Write makes the folder with the script and the tasks. A folder that has other tasks is refused, since
// jobs that still run know their tasks by number.
func (j JobArray) Write(batches [][]results.Experiment) error {
	if len(batches) == 0 {
		return errors.New("jobs: a job array without tasks")
	}
	if err := j.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(j.Folder, "logs"), 0o755); err != nil {
		return fmt.Errorf("jobs: making the folder of the job array: %w", err)
	}
	if err := WriteTasks(j.Folder, batches); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(j.Script(), []byte(j.text(len(batches)))); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	return nil
}

// check returns an error for a setting that a line of the script cannot hold.
func (j JobArray) check() error {
	for _, setting := range []struct{ name, value string }{
		{"name", j.Name}, {"folder", j.Folder}, {"partition", j.Partition}, {"resources", j.Gres}, {"time limit", j.Time}, {"line", strings.Join(j.Lines, "")},
	} {
		if strings.ContainsFunc(setting.value, unicode.IsControl) {
			return fmt.Errorf("jobs: the job array's %s %q has a line break or another control character, which a line of a Slurm script cannot hold", setting.name, setting.value)
		}
	}
	// sbatch takes its options from the script word by word.
	for _, setting := range []struct{ name, value string }{{"folder", j.Folder}, {"partition", j.Partition}, {"resources", j.Gres}, {"time limit", j.Time}} {
		if strings.ContainsFunc(setting.value, unicode.IsSpace) {
			return fmt.Errorf("jobs: the job array's %s %q has a blank, which an option of a Slurm script cannot hold; name another", setting.name, setting.value)
		}
	}
	if j.Time != "" && !timeLimit.MatchString(j.Time) {
		return fmt.Errorf("jobs: the job array's time limit %q is none of Slurm's forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours, "+
			"days-hours:minutes or days-hours:minutes:seconds, such as 04:00:00", j.Time)
	}
	return nil
}

// timeLimit is the form of a time limit, as sbatch describes it.
var timeLimit = regexp.MustCompile(`^([0-9]+-)?[0-9]+(:[0-9]+){0,2}$`)

// WriteTasks writes a list of tasks, one for each batch, into a folder. A list of other tasks that is there
// already is an error.
func WriteTasks(folder string, batches [][]results.Experiment) error {
	var tasks bytes.Buffer
	for _, batch := range batches {
		line, err := json.Marshal(batch)
		if err != nil {
			return fmt.Errorf("jobs: encoding %s: %w", describe(batch), err)
		}
		tasks.Write(append(line, '\n'))
	}
	path := filepath.Join(folder, TasksName)
	switch before, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("jobs: looking for earlier tasks: %w", err)
	case !bytes.Equal(before, tasks.Bytes()):
		return fmt.Errorf("jobs: %s has other tasks: submit its %s again, which skips what is finished, or name a new folder", folder, scriptName)
	}
	if err := atomicfile.WriteBytes(path, tasks.Bytes()); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	return nil
}

// text is the script for so many tasks.
func (j JobArray) text(tasks int) string {
	var b strings.Builder
	option := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "#SBATCH --%s=%s\n", name, value)
		}
	}
	b.WriteString("#!/bin/bash\n")
	option("job-name", j.Name)
	array := fmt.Sprintf("0-%d", tasks-1)
	if j.Parallel > 0 {
		array += fmt.Sprintf("%%%d", j.Parallel)
	}
	option("array", array)
	option("output", filepath.Join(j.Folder, "logs", "%A_%a.log"))
	option("open-mode", "append")
	b.WriteString("#SBATCH --requeue\n")
	option("signal", fmt.Sprintf("B:TERM@%d", warning))
	option("time", j.Time)
	option("partition", j.Partition)
	option("gres", j.Gres)
	if j.CPUs > 0 {
		option("cpus-per-task", fmt.Sprint(j.CPUs))
	}
	for _, line := range j.Lines {
		fmt.Fprintf(&b, "#SBATCH %s\n", line)
	}
	b.WriteString(`
# One task for each line of tasks.jsonl. To submit this again is safe: a finished result is not computed
# twice, an unfinished one goes on from its last checkpoint.
set -u
`)
	for _, variable := range j.Environment {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&b, "export %s=%s\n", name, ShellQuoted(value))
	}
	flags := ""
	for _, flag := range j.Flags {
		flags += " " + ShellQuoted(flag)
	}
	fmt.Fprintf(&b, `
# The time is nearly up, or a more important job wants the node: the program saves and ends.
program=
stopped=0
trap 'stopped=1; interrupted=1; if [ -n "$program" ]; then kill -TERM "$program"; fi' TERM
%s task %s "$SLURM_ARRAY_TASK_ID"%s &
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
if [ "$status" -eq %d ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$status"
`, ShellQuoted(j.Program), ShellQuoted(j.Folder), flags, Requeue)
	return b.String()
}

// ShellQuoted is a text as one word of a shell.
func ShellQuoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Task reads the batch of a task from a job array's folder.
func Task(folder string, index int) ([]results.Experiment, error) {
	path := filepath.Join(folder, TasksName)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("jobs: reading the tasks: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if index < 0 || index >= len(lines) {
		return nil, fmt.Errorf("jobs: there is no task %d among the %d of %s", index, len(lines), path)
	}
	d := json.NewDecoder(strings.NewReader(lines[index]))
	d.DisallowUnknownFields()
	var batch []results.Experiment
	if err := d.Decode(&batch); err != nil {
		return nil, fmt.Errorf("jobs: %s:%d: %w", path, index+1, err)
	}
	for _, e := range batch {
		if err := e.Validate(); err != nil {
			return nil, fmt.Errorf("jobs: %s:%d: %w", path, index+1, err)
		}
	}
	return batch, nil
}

// TaskPlaces are the folders of a task: its store, and those of checkpoints and predictions that all tasks
// of the array share.
func TaskPlaces(folder string, index int) (store, work, predictions string) {
	return filepath.Join(folder, "results", fmt.Sprintf("task-%d", index)), filepath.Join(folder, "work"), filepath.Join(folder, "results", "predictions")
}
