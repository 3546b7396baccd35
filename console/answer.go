package console

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// answer writes a JSON value.
func answer(w http.ResponseWriter, value []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(value) // the peer may have disconnected
}

// refuse writes an error.
func refuse(w http.ResponseWriter, status int, id, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(view.Object(nil).Raw("error", view.Object(nil).Text("id", id).Integer("code", int64(status)).Text("message", message).Close()).Close())
}

// wrongInput is the error of an invalid request.
type wrongInput string

func (w wrongInput) Error() string { return string(w) }

// fail writes err as an HTTP error. A fault of the kernel keeps its code, id and message.
func fail(w http.ResponseWriter, err error) {
	f := client.Answered(err)
	switch {
	case f != nil:
		refuse(w, f.Code(), string(f.ID), view.Escaped(f.Error()))
	case errors.Is(err, fault.DaemonNotRunning), errors.Is(err, fault.DaemonUnreachable), errors.Is(err, fault.DaemonHungUp):
		refuse(w, http.StatusServiceUnavailable, "console.away", "the kernel is away: "+view.Escaped(err.Error()))
	case errors.As(err, new(wrongInput)):
		refuse(w, http.StatusUnprocessableEntity, "console.input", err.Error())
	case errors.Is(err, context.Canceled):
		refuse(w, http.StatusServiceUnavailable, "console.ended", "the session has ended")
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, http.StatusGatewayTimeout, "console.slow", "the kernel has not answered in time")
	default:
		refuse(w, http.StatusBadGateway, "console.kernel", view.Escaped(err.Error()))
	}
}

// bodyOf reads the body of a request, which must be JSON. If it is not, bodyOf refuses the request and returns false. A browser sends
// JSON of a page of another site only after a CORS preflight, which guard refuses.
func bodyOf(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "console.input", "the body must be application/json")
		return nil, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(writeTime)) // the response recorder of a test has no deadlines
	body, err := io.ReadAll(r.Body)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		refuse(w, http.StatusRequestEntityTooLarge, "console.input", "the body is too long")
		return nil, false
	case err != nil:
		refuse(w, http.StatusBadRequest, "console.input", "the body did not come whole")
		return nil, false
	case !schema.Valid(body):
		refuse(w, http.StatusBadRequest, "console.input", "the body is not one strict JSON value")
		return nil, false
	}
	return body, true
}
