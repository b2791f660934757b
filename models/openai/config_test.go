package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/models/openai"
)

func validConfig() openai.Config {
	cfg := openai.DefaultConfig()
	cfg.BaseURL, cfg.APIKey, cfg.Model = "http://localhost:11434/v1", secretKey, "llama3.1"
	return cfg
}

func TestValidateNamesTheField(t *testing.T) {
	t.Parallel()
	if err := validConfig().Validate(); err != nil {
		t.Fatalf("Validate = %v, want nil", err)
	}
	for _, row := range []struct {
		field string
		spoil func(*openai.Config)
	}{
		{"baseUrl", func(c *openai.Config) { c.BaseURL = "" }},
		{"baseUrl", func(c *openai.Config) { c.BaseURL = "localhost:11434" }},
		{"baseUrl", func(c *openai.Config) { c.BaseURL = "ftp://example.com/v1" }},
		{"baseUrl", func(c *openai.Config) { c.BaseURL = "http://user:" + secretKey + "@example.com/v1" }},
		{"baseUrl", func(c *openai.Config) { c.BaseURL = "http://example.com/v1?key=" + secretKey }},
		{"baseUrl", func(c *openai.Config) { c.BaseURL = "http://example.com/v1#" + secretKey }},
		{"baseUrl", func(c *openai.Config) { c.BaseURL = "http://[" + secretKey }},
		{"apiKey", func(c *openai.Config) { c.APIKey += "\n" }},
		{"apiKey", func(c *openai.Config) { c.APIKey += "é" }},
		{"model", func(c *openai.Config) { c.Model = " " }},
		{"timeout", func(c *openai.Config) { c.Timeout = 0 }},
		{"maxRetries", func(c *openai.Config) { c.MaxRetries = -1 }},
		{"maxRetries", func(c *openai.Config) { c.MaxRetries = 21 }},
		{"retryDelay", func(c *openai.Config) { c.RetryDelay = 0 }},
		{"maxRetryDelay", func(c *openai.Config) { c.MaxRetryDelay = c.RetryDelay - 1 }},
		{"maxTokensField", func(c *openai.Config) { c.MaxTokensField = "n_predict" }},
		{"dimensions", func(c *openai.Config) { c.Dimensions = -1 }},
		{"requestDimensions", func(c *openai.Config) { c.RequestDimensions = true }},
		{"batchInputs", func(c *openai.Config) { c.BatchInputs = 2049 }},
		{"batchTokens", func(c *openai.Config) { c.BatchTokens = 0 }},
	} {
		cfg := validConfig()
		row.spoil(&cfg)
		err := cfg.Validate()
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "openai: config: "+row.field+": ") ||
			strings.Count(err.Error(), "openai: config: ") != 1 {
			t.Errorf("Validate = %v, want ErrInvalid for %s alone", err, row.field)
			continue
		}
		if strings.Contains(err.Error(), secretKey) {
			t.Errorf("Validate tells the secret: %v", err)
		}
		if _, err := openai.NewCompleter(cfg); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("NewCompleter with a wrong %s = %v, want ErrInvalid", row.field, err)
		}
		if _, err := openai.NewEmbedder(cfg); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("NewEmbedder with a wrong %s = %v, want ErrInvalid", row.field, err)
		}
	}
}

func TestDefaultConfigLacksOnlyAddressAndModel(t *testing.T) {
	t.Parallel()
	err := openai.DefaultConfig().Validate()
	if err == nil || strings.Count(err.Error(), "openai: config: ") != 2 {
		t.Errorf("Validate of the default = %v, want baseUrl and model alone", err)
	}
}

func TestConfigHidesTheKey(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://localhost:1/v1", "http://u:" + secretKey + "@localhost:1/v1", "http://localhost:1/?k=" + secretKey} {
		cfg := validConfig()
		cfg.BaseURL = address
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("start", "config", cfg)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("start", "config", cfg)
		for _, text := range []string{fmt.Sprint(cfg), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg), log.String()} {
			if strings.Contains(text, secretKey) || !strings.Contains(text, "llama3.1") {
				t.Errorf("printed config %q, want the model and no secret", text)
			}
		}
	}
	data, err := json.Marshal(validConfig())
	if err != nil || bytes.Contains(data, []byte(secretKey)) {
		t.Errorf("JSON %s, %v tells the key", data, err)
	}
}
