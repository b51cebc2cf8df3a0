package cifar

import (
	"os"
	"testing"
)

func TestMeterGoesOn(t *testing.T) {
	folder := t.TempDir()
	m, err := startMeter(folder)
	if err != nil {
		t.Fatal(err)
	}
	m.began = m.began.Add(-meterEvery)
	m.lastSaved = m.began
	m.imagesPerSecond = 7
	if err := m.saveNowAndThen(); err != nil {
		t.Fatal(err)
	}
	next, err := startMeter(folder)
	if err != nil {
		t.Fatal(err)
	}
	if wall, _ := next.now(); wall < meterEvery.Seconds() || next.imagesPerSecond != 7 {
		t.Errorf("after %v the next meter has %v s and %v images/s", meterEvery, wall, next.imagesPerSecond)
	}
	if err := os.WriteFile(m.file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, "a damaged file", errorOf(startMeter(folder)), m.file)
}
