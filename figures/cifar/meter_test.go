package cifar

import (
	"os"
	"strings"
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
	if _, err := startMeter(folder); err == nil || !strings.Contains(err.Error(), m.file) {
		t.Errorf("a damaged file: %v", err)
	}
}
