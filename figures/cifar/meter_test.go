package cifar

import (
	"os"
	"testing"

	"densityuncertainty/environment"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/results"
)

func TestMeterGoesOn(t *testing.T) {
	folder := t.TempDir()
	first := environment.Info{Backend: "xla:cpu", Device: "a processor", Version: "v1"}
	m := must.Get(startMeter(folder, first))(t)
	m.began = m.began.Add(-meterEvery)
	m.lastSaved = m.began
	m.imagesPerSecond = 7
	must.Do(t, m.saveNowAndThen())
	next := must.Get(startMeter(folder, first))(t)
	if wall, _ := next.now(); wall < meterEvery.Seconds() || next.imagesPerSecond != 7 {
		t.Errorf("after %v the next meter has %v s and %v images/s", meterEvery, wall, next.imagesPerSecond)
	}
	// By what it was computed: once what stays the same, and all of what changes.
	var line results.Result
	next.note(&line)
	if line.WallSeconds < meterEvery.Seconds() || line.Backend != "xla:cpu" || line.Device != "a processor" || line.Version != "v1" {
		t.Errorf("a run that went on with the same: %+v", line)
	}
	must.Do(t, next.save())
	third := must.Get(startMeter(folder, environment.Info{Backend: "xla:cuda", Device: "a GPU", Version: "v1"}))(t)
	must.Do(t, third.save())
	must.Get(startMeter(folder, first))(t).note(&line)
	if line.Backend != "xla:cpu, xla:cuda" || line.Device != "a processor, a GPU" || line.Version != "v1" {
		t.Errorf("a run that went on with something else: %+v", line)
	}
	must.Do(t, os.WriteFile(m.file, []byte("{"), 0o600))
	fails(t, "a damaged file", errorOf(startMeter(folder, first)), m.file)
}
