package chaos_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// tally is what became of the calls of a cell.
type tally struct {
	cell

	calls, answered, notStarted, lost, wrong, unknown int
	// again counts the calls that were executed more than once, by kind.
	again [kinds]int
	// repeated are those of them that must not be: faults.
	repeated int
	// unexplained are answers that the journals contradict: faults.
	unexplained int
	// reasons counts the texts of unknown outcomes.
	reasons map[string]int
	// recovered is, for each round, how long after the fault a call of every kind
	// was answered.
	recovered []time.Duration
	list      []*call // all of them, to be looked at again in the end
}

// add counts what became of the calls.
func (s *tally) add(t *testing.T, w *world, list []*call) {
	t.Helper()
	w.ledger.read(t)
	s.list = append(s.list, list...)
	if s.reasons == nil {
		s.reasons = map[string]int{}
	}
	for _, c := range list {
		n := w.ledger.executions(c.key)
		s.calls++
		switch c.outcome {
		case answered:
			s.answered++
			s.unexplain(t, c, n, n >= 1)
		case notStarted:
			s.notStarted++
			s.unexplain(t, c, n, n == 0)
		case unknown:
			s.unknown++
			s.reasons[c.kind.String()+": "+strings.ReplaceAll(c.detail, w.proxied, "…")]++
			s.unexplain(t, c, n, n <= 1 && !c.kind.mayRepeat())
		case wrong:
			s.wrong++
			t.Errorf("%v: a wrong answer to a call of kind %v after %v: %s", s.cell, c.kind, c.took, c.detail)
		default:
			s.lost++
			t.Errorf("%v: a call of kind %v is lost: operation %q, %d executions, %d requests, %s", s.cell, c.kind, c.id, n, c.messages, c.detail)
		}
		if n > 1 {
			s.again[c.kind]++
			if !c.kind.mayRepeat() {
				s.repeated++
				t.Errorf("%v: a call of kind %v ran %d times: operation %q", s.cell, c.kind, n, c.id)
			}
		}
	}
}

// unexplain counts an outcome that the journals contradict.
func (s *tally) unexplain(t *testing.T, c *call, executions int, ok bool) {
	t.Helper()
	if !ok {
		s.unexplained++
		t.Errorf("%v: a call of kind %v ended as %d, and was executed %d times: operation %q", s.cell, c.kind, c.outcome, executions, c.id)
	}
}

// lookAgain finds the executions of what must not be repeated that came after the
// count.
func (s *tally) lookAgain(t *testing.T, w *world) {
	t.Helper()
	repeated := 0
	for _, c := range s.list {
		if !c.kind.mayRepeat() && w.ledger.executions(c.key) > 1 {
			repeated++
		}
		if c.outcome == notStarted && w.ledger.executions(c.key) > 0 {
			t.Errorf("%v: a call of kind %v that was never started has run: operation %q", s.cell, c.kind, c.id)
		}
	}
	if repeated != s.repeated {
		t.Errorf("%v: %d calls ran again later", s.cell, repeated-s.repeated)
	}
}

func (s *tally) median() time.Duration {
	if len(s.recovered) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(s.recovered))[(len(s.recovered)-1)/2]
}

func (s *tally) slowest() time.Duration {
	return slices.Max(append([]time.Duration{0}, s.recovered...))
}
