package train

import (
	"testing"
	"time"
)

func TestCheckpointDefaults(t *testing.T) {
	for _, c := range []struct{ given, want Checkpoints }{
		{Checkpoints{}, Checkpoints{Every: 10 * time.Minute, Keep: 2}},
		{Checkpoints{EverySteps: 7}, Checkpoints{EverySteps: 7, Keep: 2}},
		{Checkpoints{Every: time.Hour, Keep: 1}, Checkpoints{Every: time.Hour, Keep: 1}},
	} {
		if got := c.given.withDefaults(); got != c.want {
			t.Errorf("%+v becomes %+v, want %+v", c.given, got, c.want)
		}
	}
}
