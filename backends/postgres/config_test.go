package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
)

const secretDSN = "postgres://kim:hunter2@example.com/secretdb?sslmode=require"

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*postgres.Config){
		"dsn":            func(c *postgres.Config) { c.DSN = " " },
		"dsn garbled":    func(c *postgres.Config) { c.DSN = "postgres://kim:hunter2@%zz/secretdb" },
		"replicaDsn":     func(c *postgres.Config) { c.ReplicaDSN = "hunter2" },
		"schema":         func(c *postgres.Config) { c.Schema = `x"; DROP` },
		"schema pg_":     func(c *postgres.Config) { c.Schema = "pg_mine" },
		"maxConns":       func(c *postgres.Config) { c.MaxConns = 1001 },
		"timeout":        func(c *postgres.Config) { c.Timeout = 1 },
		"connectTimeout": func(c *postgres.Config) { c.ConnectTimeout = 1 },
		"maxRetries":     func(c *postgres.Config) { c.MaxRetries = 21 },
		"vectors":        func(c *postgres.Config) { c.Vectors = "maybe" },
		"exactVectors":   func(c *postgres.Config) { c.ExactVectors = -1 },
		"language":       func(c *postgres.Config) { c.Language = "english'" },
		"partitions":     func(c *postgres.Config) { c.Partitions = -1 },
	} {
		cfg := postgres.DefaultConfig()
		cfg.DSN = secretDSN
		if err := cfg.Validate(); err != nil {
			t.Fatalf("Validate of the defaults: %v", err)
		}
		change(&cfg)
		field, _, _ := strings.Cut(name, " ")
		err := cfg.Validate()
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(fmt.Sprint(err), field+":") || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%s: Validate = %v, want ErrInvalid that names the field and no password", name, err)
		}
	}
	if err := (postgres.Config{DSN: secretDSN}).Validate(); err != nil {
		t.Errorf("zero values: Validate = %v, want none", err)
	}
}

func TestConfigShowsNoSecret(t *testing.T) {
	cfg := postgres.DefaultConfig().WithEnv(func(name string) string {
		return map[string]string{postgres.EnvDSN: secretDSN, postgres.EnvReplicaDSN: secretDSN}[name]
	})
	if cfg.DSN != secretDSN || cfg.ReplicaDSN != secretDSN {
		t.Error("WithEnv did not take the addresses from the environment")
	}
	cfg.DSN = "mine"
	if got := cfg.WithEnv(func(string) string { return "other" }); got.DSN != "mine" {
		t.Error("the environment won over the configuration")
	}
	cfg.DSN = secretDSN
	encoded, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{cfg.String(), fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), cfg.LogValue().String(), string(encoded)} {
		for _, secret := range []string{"hunter2", "kim", "example.com", "secretdb"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q shows %q", text, secret)
			}
		}
	}
}
