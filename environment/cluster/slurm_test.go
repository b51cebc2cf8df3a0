// Package cluster has files that start the command reproduce several times on one store, on clusters.
package cluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"densityuncertainty/environment/must"
)

// config is slurm.conf for a cluster of this machine alone, as this user.
const config = `ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=test Nodes=%[1]s Default=YES MaxTime=INFINITE State=UP
AuthType=auth/none
CredType=cred/none
SlurmUser=%[2]s
SlurmdUser=%[2]s
StateSaveLocation=%[3]s/state
SlurmdSpoolDir=%[3]s/spool
SlurmctldPidFile=%[3]s/slurmctld.pid
SlurmdPidFile=%[3]s/slurmd.pid
SlurmctldLogFile=%[3]s/slurmctld.log
SlurmdLogFile=%[3]s/slurmd.log
SlurmctldPort=%[4]d
SlurmdPort=%[5]d
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
`

// A real Slurm runs the array of slurm.sh. One of its tasks is requeued while it trains. It resumes from its checkpoint,
// and at the end each result is there once.
func TestSlurm(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	for _, program := range []string{"slurmctld", "slurmd", "sbatch", "scontrol", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("Slurm is not installed (Debian, Ubuntu: sudo apt install slurm-wlm): %v", err)
		}
	}
	dir := t.TempDir()
	runs, program := filepath.Join(dir, "runs"), filepath.Join(dir, "reproduce")
	command(t, "go", "build", "-tags", "noxla", "-o", program, "densityuncertainty/figures/cmd/reproduce")
	startSlurm(t, dir)

	t.Setenv("REPRODUCE", program)
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	t.Setenv("GOMAXPROCS", "1") // so that a task is at one of the two groups at a time
	command(t, "sbatch", "--hold", "--array=0-1", "--output="+filepath.Join(dir, "task-%a.log"), "slurm.sh",
		"uci-nll", "--datasets", "yacht", "--methods", "mcdropout,rank1", "--splits", "0,1", "--epochs", "3000", "--store", runs)
	log := filepath.Join(dir, "task-0.log")
	command(t, "scontrol", "release", "1_0")
	until(t, dir, "task 0 trains", func() bool { return strings.Contains(text(log), " epoch ") })
	time.Sleep(time.Second)
	command(t, "scontrol", "requeue", "1_0")
	until(t, dir, "task 0 is queued again", func() bool {
		return command(t, "squeue", "--noheader", "--jobs=1_0", "--format=%T") == "PENDING\n"
	})
	// When a node ends a task, it also refuses to start it again for the rest of that second.
	time.Sleep(2 * time.Second)
	command(t, "scontrol", "update", "JobId=1_0", "StartTime=now") // else Slurm waits for two minutes
	until(t, dir, "task 0 has begun again", func() bool { return strings.Count(text(log), " to run\n") == 2 })
	command(t, "scontrol", "release", "1_1") // not sooner: it would take the group that task 0 has left
	until(t, dir, "all tasks have ended", func() bool {
		return command(t, "squeue", "--noheader", "--states=all", "--format=%T") == "COMPLETED\nCOMPLETED\n"
	})

	before, after, _ := strings.Cut(text(log), "reproduce: stopped: terminated\n")
	from, to := epoch(t, before), epoch(t, after)
	if to <= from {
		t.Errorf("task 0 began with epoch %d, and when it was queued again with epoch %d:\n%s", from, to, text(log))
	}
	seen := map[string]bool{}
	for _, file := range must.Get(filepath.Glob(filepath.Join(runs, "yacht-*.csv")))(t) {
		_, rows, _ := strings.Cut(text(file), "\n")
		for row := range strings.Lines(rows) {
			experiment := strings.Join(strings.Split(row, ",")[:4], ",") // group, method, split, seed
			if seen[experiment] {
				t.Errorf("the result of %s is there twice", experiment)
			}
			seen[experiment] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d results, want 4", len(seen))
	}
}

// startSlurm starts a controller and a node, and waits until they are ready.
func startSlurm(t *testing.T, dir string) {
	t.Helper()
	host, _, _ := strings.Cut(must.Get(os.Hostname())(t), ".")
	name := must.Get(user.Current())(t).Username
	for _, folder := range []string{"state", "spool"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, folder), 0o755))
	}
	file := filepath.Join(dir, "slurm.conf")
	must.Do(t, os.WriteFile(file, fmt.Appendf(nil, config, host, name, dir, freePort(t), freePort(t)), 0o644))
	t.Setenv("SLURM_CONF", file)
	for _, daemon := range []string{"slurmctld", "slurmd"} {
		d := exec.Command(daemon, "-D")
		must.Do(t, d.Start())
		t.Cleanup(func() {
			if err := d.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
			_ = d.Wait() // its status says how it was ended
		})
	}
	until(t, dir, "the node is idle", func() bool {
		state, err := exec.Command("sinfo", "--noheader", "--format=%T").Output()
		return err == nil && string(state) == "idle\n"
	})
}

// until waits for a condition, and at the end fails with all logs.
func until(t *testing.T, dir, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			logs := ""
			for _, file := range must.Get(filepath.Glob(filepath.Join(dir, "*.log")))(t) {
				logs += file + ":\n" + text(file)
			}
			t.Fatalf("after ten minutes it is not so that %s\n%s", what, logs)
		}
	}
}

// epoch is the first epoch that a log names.
func epoch(t *testing.T, log string) int {
	t.Helper()
	found := regexp.MustCompile(` epoch (\d+) of `).FindStringSubmatch(log)
	if found == nil {
		t.Fatalf("the log names no epoch:\n%s", log)
	}
	return must.Get(strconv.Atoi(found[1]))(t)
}

// command runs a program, which must succeed, and returns its output.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// text is the content of a file, "" if there is none.
func text(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(content)
}

func freePort(t *testing.T) int {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
