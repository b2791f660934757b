package conformance

import "testing"

func TestRerunSaysHowManyCases(t *testing.T) {
	t.Setenv(envCases, "")
	t.Setenv(envTimes, "")
	const plain = "go test ./conformance -run '^TestA$/^b\\+c$' -conformance.seed=7"
	if got := rerun("TestA/b+c", 7); *casesFlag == 0 && got != plain {
		t.Errorf("rerun = %q, want %q", got, plain)
	}
	t.Setenv(envTimes, "10")
	if got := rerun("TestA/b+c", 7); *casesFlag == 0 && got != envTimes+"=10 "+plain {
		t.Errorf("rerun = %q, want the number of cases in it", got)
	}
}
