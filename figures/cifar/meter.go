package cifar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"densityuncertainty/environment"
	"densityuncertainty/environment/atomicfile"
	"densityuncertainty/figures/jobs"
	"densityuncertainty/figures/results"
)

// A meter adds up the time that a run takes, in all the processes in which it went
// on, and by what. What a killed process spent since the last save is lost.
type meter struct {
	before    spent // by earlier processes
	info      environment.Info
	file      string // "" for none
	began     time.Time
	beganCPU  time.Duration
	lastSaved time.Time
	lost      bool // it could not be saved, which was said
	// imagesPerSecond is the speed of the training, 0 while it is not known.
	imagesPerSecond float64
}

// spent is what a meter keeps in its file.
type spent struct {
	WallSeconds     float64 `json:"wall_seconds"`
	CPUSeconds      float64 `json:"cpu_seconds"`
	ImagesPerSecond float64 `json:"images_per_second"`
	// ComputedBy are the backends, devices and versions, each once.
	ComputedBy []environment.Info `json:"computed_by,omitempty"`
}

const meterEvery = 30 * time.Second

// startMeter goes on with the meter in a folder, if there is one.
func startMeter(folder string, info environment.Info) (*meter, error) {
	m := &meter{info: info, began: time.Now(), beganCPU: jobs.CPUTime(), lastSaved: time.Now()}
	if folder == "" {
		return m, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for work: %w", err)
	}
	m.file = filepath.Join(folder, "spent.json")
	content, err := os.ReadFile(m.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil
	case err != nil:
		return nil, fmt.Errorf("reading the time spent: %w", err)
	}
	if err := json.Unmarshal(content, &m.before); err != nil {
		return nil, fmt.Errorf("%s is damaged, remove it: %w", m.file, err)
	}
	m.imagesPerSecond = m.before.ImagesPerSecond
	return m, nil
}

// now is the time spent until now.
func (m *meter) now() (wall, cpu float64) {
	return m.before.WallSeconds + time.Since(m.began).Seconds(), m.before.CPUSeconds + (jobs.CPUTime() - m.beganCPU).Seconds()
}

// computedBy are this process's backend, device and version, after those of earlier ones.
func (m *meter) computedBy() []environment.Info {
	if slices.Contains(m.before.ComputedBy, m.info) {
		return m.before.ComputedBy
	}
	return append(slices.Clone(m.before.ComputedBy), m.info)
}

// note writes into a line the time spent and by what: where processes differ, all of them, as "xla:cpu, xla:cuda".
func (m *meter) note(line *results.Result) {
	line.WallSeconds, line.CPUSeconds = m.now()
	all := func(of func(environment.Info) string) string { return strings.Join(distinct(m.computedBy(), of), ", ") }
	line.Backend = all(func(by environment.Info) string { return by.Backend })
	line.Device = all(func(by environment.Info) string { return by.Device })
	line.Version = all(func(by environment.Info) string { return by.Version })
}

// distinct are the names of a list, each once, in the order in which they come.
func distinct[T any](list []T, name func(T) string) (names []string) {
	for _, one := range list {
		if n := name(one); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func (m *meter) saveNowAndThen() error {
	if time.Since(m.lastSaved) < meterEvery {
		return nil
	}
	return m.save()
}

func (m *meter) save() error {
	m.lastSaved = time.Now()
	if m.file == "" {
		return nil
	}
	wall, cpu := m.now()
	content, err := json.Marshal(spent{wall, cpu, m.imagesPerSecond, m.computedBy()})
	if err != nil {
		return fmt.Errorf("keeping the time spent: %w", err)
	}
	if err := atomicfile.WriteBytes(m.file, content); err != nil {
		return fmt.Errorf("keeping the time spent: %w", err)
	}
	return nil
}
