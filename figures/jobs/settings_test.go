package jobs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

// A setting that a line of the script cannot hold is refused by its name, before anything is written.
func TestSettingsOfAJobArray(t *testing.T) {
	batches := [][]results.Experiment{{{Study: results.UCI, Method: "density", Dataset: "yacht", Splits: "gal", Epochs: 100, Samples: 10,
		Fidelity: results.Paper, Scale: results.Full}}}
	for _, c := range []struct {
		name string
		set  func(j *jobs.JobArray, value string)
		what string // names the setting in the error
		word bool   // sbatch takes it as one word
	}{
		{"name", func(j *jobs.JobArray, value string) { j.Name = value }, "name", false},
		{"folder", func(j *jobs.JobArray, value string) { j.Folder = filepath.Join(j.Folder, value) }, "folder", true},
		{"partition", func(j *jobs.JobArray, value string) { j.Partition = value }, "partition", true},
		{"gres", func(j *jobs.JobArray, value string) { j.Gres = value }, "resources", true},
		{"time", func(j *jobs.JobArray, value string) { j.Time = value }, "time limit", true},
		{"line", func(j *jobs.JobArray, value string) { j.Lines = []string{"--account=a", value} }, "line", false},
	} {
		for _, v := range []struct {
			name, value, written string
			refused              bool
		}{
			{"line break", "a\n#SBATCH --exclusive", `a\n#SBATCH`, true},
			{"carriage return", "a\rb", `a\rb`, true},
			{"escape", "a\x1b[2Jb", `a\x1b[2Jb`, true},
			{"blank", "a b", `a b"`, c.word},
			{"plain", "a,b:1", `"a,b:1" is none of Slurm's forms`, c.name == "time"},
			{"minutes", "90", "", false}, {"minutes and seconds", "1:30", "", false}, {"hours", "04:00:00", "", false},
			{"days and hours", "2-12", "", false}, {"days to seconds", "2-12:30:00", "", false},
			{"other colons", "1:2:3:4", `"1:2:3:4" is none of Slurm's forms`, c.name == "time"},
		} {
			t.Run(c.name+"/"+v.name, func(t *testing.T) {
				dir := t.TempDir()
				job := jobs.JobArray{Name: "n", Folder: filepath.Join(dir, "job"), Program: "p"}
				c.set(&job, v.value)
				err := job.Write(batches)
				if !v.refused {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), "the job array's "+c.what+" ") || !strings.Contains(err.Error(), v.written) {
					t.Errorf("error %v, want one of %s with %q", err, c.what, v.written)
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
					t.Errorf("it wrote %v, %v", left, err)
				}
			})
		}
	}
}
