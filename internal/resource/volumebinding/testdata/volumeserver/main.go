// Volumeserver is the least that a server of volumes can be. The folder /control tells what it answers, and has what it was asked.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	fmt.Println("volumeserver starts")
	if text := read("crash"); text != "" {
		log.Fatal(text)
	}
	if text := os.Getenv("GREETING"); text != "" { // a variable, and a folder, that the pod has by its template
		write("/scratch/greeting", text)
		write("greeting", read("/scratch/greeting"))
	}
	http.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) { write("probed", "yes") })
	http.HandleFunc("/volume", volume)
	log.Fatal(http.ListenAndServe(":8080", nil))
}

func volume(w http.ResponseWriter, r *http.Request) {
	note(r.Method + " " + r.URL.RawQuery)
	if r.Header.Get("Virtclaim-Token") != strings.TrimSpace(read("/var/run/virtclaim/token")) {
		http.Error(w, "not the token", http.StatusUnauthorized)
		return
	}
	key := "volume-" + r.Header.Get("Idempotency-Key")
	switch {
	case read("hang") == r.Method:
		<-r.Context().Done()
	case read("refuse") == r.Method:
		http.Error(w, "not today", http.StatusConflict)
	case r.Method == http.MethodDelete:
		_ = os.Remove("/control/" + key)
		w.WriteHeader(http.StatusNoContent)
	case read("created") == r.Method: // it does not know If-Match, and says each time that it has made the volume
		if read(key) == "" {
			write(key, "made")
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, read("answer"))
	case read(key) == "" && r.Header.Get("If-Match") != "":
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		if read(key) == "" {
			write(key, "made")
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = fmt.Fprint(w, read("answer"))
	}
	if read("die") == r.Method {
		log.Fatal("the server was told to die")
	}
}

func at(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/control/" + name
}

func read(name string) string {
	text, _ := os.ReadFile(at(name))
	return strings.TrimSpace(string(text))
}

func write(name, text string) {
	if err := os.WriteFile(at(name), []byte(text), 0o660); err != nil {
		log.Fatal(err)
	}
}

func note(line string) {
	f, err := os.OpenFile(at("asked"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o660)
	if err != nil {
		log.Fatal(err)
	}
	_, _ = fmt.Fprintln(f, line)
	_ = f.Close()
}
