package cifar

import (
	"os"
	"testing"

	"densityuncertainty/environment/must"
)

func TestMeterGoesOn(t *testing.T) {
	folder := t.TempDir()
	m := must.Get(startMeter(folder))(t)
	m.began = m.began.Add(-meterEvery)
	m.lastSaved = m.began
	m.imagesPerSecond = 7
	must.Do(t, m.saveNowAndThen())
	next := must.Get(startMeter(folder))(t)
	if wall, _ := next.now(); wall < meterEvery.Seconds() || next.imagesPerSecond != 7 {
		t.Errorf("after %v the next meter has %v s and %v images/s", meterEvery, wall, next.imagesPerSecond)
	}
	must.Do(t, os.WriteFile(m.file, []byte("{"), 0o600))
	fails(t, "a damaged file", errorOf(startMeter(folder)), m.file)
}
