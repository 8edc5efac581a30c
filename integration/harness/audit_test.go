package harness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseAudit(t *testing.T) {
	const text = `{"kind":"Event","auditID":"a","stage":"ResponseComplete","verb":"patch","userAgent":"podstarter","responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.000001Z","stageTimestamp":"2026-01-02T03:04:05.010000Z"}
{"auditID":"b","stage":"ResponseStarted","verb":"watch","userAgent":"podstarter","responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:06Z","stageTimestamp":"2026-01-02T03:04:06.1Z"}
{"auditID":"c","stage":"ResponseStarted","verb":"watch","userAgent":"podstarter","responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:07Z","stageTimestamp":"2026-01-02T03:04:07.1Z"}
{"auditID":"d","stage":"ResponseComplete","verb":"list","userAgent":"kubectl","responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:07Z","stageTimestamp":"2026-01-02T03:04:07.1Z"}
{"auditID":"b","stage":"ResponseComplete","verb":"watch","userAgent":"podstarter","responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:06Z","stageTimestamp":"2026-01-02T03:04:08Z"}
{"auditID":"e","stage":"Resp`
	at := func(second, micro int) time.Time {
		return time.Date(2026, 1, 2, 3, 4, second, micro*1000, time.UTC)
	}
	want := []APICall{
		{"patch", 200, at(5, 1), at(5, 10000)},
		{"watch", 200, at(6, 0), at(8, 0)},
		{"watch", 200, at(7, 0), time.Time{}},
	}
	got, err := parseAudit([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseAudit([]byte("nothing\n")); err == nil {
		t.Error("want an error for text that is not an audit log")
	}
}
