package cluster_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
)

// A kernel that connects signs a text that the bus chooses. It must not sign one that could be a request, an answer or a checkpoint.
func TestSignsNoncesOnly(t *testing.T) {
	t.Parallel()
	key, _ := testbus.Key(t, testkit.Dir(t), "alpha", "")
	for text, signed := range map[string]bool{
		"SfEXrcZ_AqWx-Yg":                     true, // as a node of NATS makes it
		"":                                    false,
		strings.Repeat("x", 65):               false,
		"pwos request 1\n{}":                  false,
		"pwos-checkpoint@v1\n7\n" + "ab\n5\n": false,
	} {
		t.Run(fmt.Sprintf("%.20q", text), func(t *testing.T) {
			t.Parallel()
			if got := signsAsNonce(t, key, text); got != signed {
				t.Errorf("signed: %v", got)
			}
		})
	}
}

// signsAsNonce reports whether a kernel signs a text that a node of the bus asks for. If not, it ends the connection.
func signsAsNonce(t *testing.T, key *access.HostKey, text string) bool {
	t.Helper()
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	connected := make(chan struct{})
	go func() { // Connect waits for the node
		defer close(connected)
		conn, err := cluster.Connect(cluster.Options{Name: "alpha", Servers: "nats://" + l.Addr().String(), Key: key, Log: quiet})
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}()
	defer func() { <-connected }()
	peer := testkit.Value(l.Accept())(t)
	defer peer.Close()
	nonce := testkit.Value(json.Marshal(text))(t)
	_, err := fmt.Fprintf(peer, `INFO {"server_id":"x","version":"2.12.0","proto":1,"headers":true,"max_payload":1048576,"auth_required":true,"nonce":%s}`+"\r\n", nonce)
	testkit.Must(t, err)
	testkit.Must(t, peer.SetReadDeadline(time.Now().Add(testkit.Patience)))
	line, err := bufio.NewReader(peer).ReadString('\n')
	if errors.Is(err, io.EOF) {
		return false
	}
	testkit.Must(t, err)
	var sent struct{ Sig string }
	testkit.Must(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "CONNECT ")), &sent))
	return sent.Sig != ""
}

// The bus answers a request without a receiver by an unsigned message. A member that could guess the inbox of another kernel's request
// could send that one too.
func TestInboxesCannotBeGuessed(t *testing.T) {
	t.Parallel()
	alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", "")
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	b := testbus.Start(t, lineOfAlpha, lineOfBeta)
	inboxes := make(chan string, 100)
	receiver := join(t, b, "beta", beta)
	handleRequests(t, receiver.conn, "beta", func(m *nats.Msg) {
		inboxes <- m.Reply
		reply(t, beta, m, `{"from":"beta","session":"s","number":0}`)
	})
	from, _ := linked(t, b, "alpha", alpha, lineOfAlpha+"\n"+lineOfBeta+"\n")
	from.Link().Post(letter(1, `1`))
	first := testkit.Receive(t, inboxes, "a request")
	second := testkit.Receive(t, inboxes, "another request")
	same := 0
	for same < min(len(first), len(second)) && first[same] == second[same] {
		same++
	}
	prefix := cluster.InboxPrefix("alpha") + "."
	if !strings.HasPrefix(first, prefix) || same > len(prefix)+4 || len(first) < len(prefix)+26 {
		t.Errorf("inboxes %s and %s", first, second)
	}
}
