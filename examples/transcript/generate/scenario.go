package main

// scenario is the conversation: an afternoon on a service that prints tide tables for small harbours.
func scenario() []turn {
	return append(append(morning(), middle()...), evening()...)
}

func morning() []turn {
	return []turn{
		{
			user: "Hi! I'm Ines. This is tidetable, a little service that prints tide tables for our harbours. Have a look around and tell me what the packages do. Please keep answers short, I read them on a phone.",
			steps: []step{
				run("", "ls -R --ignore=testdata", "cmd/tidetable/main.go\nharbour/harbour.go\nharbour/zone.go\npredict/predict.go\npredict/series.go\nprint/table.go\nprint/pdf.go\nstore/store.go\nstore/migrate.go\nweb/handler.go\nweb/cache.go\n", false),
				read("The heart is probably predict.", "predict/predict.go", file("predict", "Package predict computes high and low water from harmonic constants.", "Constituents", "Amplitudes", "HighWater", "LowWater", "Merge")),
				read("", "harbour/harbour.go", file("harbour", "Package harbour knows where harbours are and which gauge they follow.", "Nearest", "Offsets", "Validate", "Sort")),
			},
			answer: "harbour: where harbours are and which gauge they follow. predict: high and low water from harmonic constants. print: tables as text and PDF. store: SQLite. web: HTTP with a cache. cmd/tidetable starts it all.",
		},
		{
			user: "Good. A user in Porto Velo says today's low water is an hour late. Only since Sunday. The harbour id is PV-114.",
			steps: []step{
				search("Since Sunday smells like daylight saving time.", `time.LoadLocation\(`, matches(`loc, err := time.LoadLocation\(zone)`, "harbour/zone.go", "print/table.go", "web/handler.go")),
				read("", "harbour/zone.go", file("harbour", "Zones of harbours, and when their clocks change.", "ZoneOf", "Shift", "LocalDay")),
				run("", "sqlite3 tides.db \"select * from harbour where id='PV-114'\"", table("id | name | zone | gauge | offset_min", "PV-114 | Porto Velo | Etc/GMT-1 | G-07 | -12"), false),
			},
			answer: "PV-114 is stored with the fixed zone Etc/GMT-1. It never follows summer time, so since Sunday its times are an hour off. The other harbours use names such as Europe/Lisbon.",
		},
		{
			user: "Are there other harbours with a fixed zone?",
			steps: []step{
				run("", "sqlite3 tides.db \"select id,name,zone from harbour where zone like 'Etc/%'\"", table("id | name | zone", "PV-114 | Porto Velo | Etc/GMT-1", "SK-020 | Skerry Bay | Etc/GMT", "AL-009 | Alder Quay | Etc/GMT-1"), false),
			},
			answer: "Three: PV-114 Porto Velo, SK-020 Skerry Bay and AL-009 Alder Quay.",
		},
		{
			user: "Skerry Bay is right: they print in UTC on purpose, the pilots want it. Fix the other two to Europe/Madrid with a migration, and remember the exception somewhere in the code.",
			steps: []step{
				read("", "store/migrate.go", file("store", "Migrations, applied in order, each once.", "Migrate", "Version", "Lock", "Seed")),
				edit("", "store/migrate.go", "// end of migrations", "{7, `update harbour set zone='Europe/Madrid' where id in ('PV-114','AL-009')`},\n\t// end of migrations"),
				edit("", "harbour/zone.go", "// Zones of harbours, and when their clocks change.", "// Zones of harbours, and when their clocks change. SK-020 (Skerry Bay) has Etc/GMT on purpose: its pilots work in UTC."),
				run("", "go test ./store ./harbour", tests("store", []string{"TestMigrate", "TestMigrateTwice", "TestVersion", "TestLock", "TestSeed"}, nil)+tests("harbour", []string{"TestZoneOf", "TestShift", "TestLocalDay", "TestNearest"}, nil), false),
			},
			answer: "Migration 7 sets PV-114 and AL-009 to Europe/Madrid. The comment in harbour/zone.go says why SK-020 stays on Etc/GMT. Tests pass.",
		},
		{
			user: "Please also refuse fixed zones when somebody adds a harbour, except for a list. The list should be in configuration, key allowFixedZone.",
			steps: []step{
				search("", `func LoadConfig`, matches(`func LoadConfig(path string) (Config, error) {`, "cmd/tidetable/main.go")),
				read("", "cmd/tidetable/main.go", file("main", "Command tidetable serves and prints tide tables.", "LoadConfig", "Serve", "PrintAll", "Shutdown")),
				edit("", "cmd/tidetable/main.go", "Listen string", "Listen string\n\t// AllowFixedZone lists harbours that may have a zone without summer time.\n\tAllowFixedZone []string `json:\"allowFixedZone\"`"),
				edit("", "harbour/harbour.go", "func Validate(", "// Validate refuses fixed zones unless fixed lists the harbour.\nfunc Validate("),
				run("", "go test ./...", tests("harbour", []string{"TestValidate", "TestValidateFixedZone", "TestSort"}, map[string]string{"TestValidateFixedZone": "harbour_test.go:88: Validate(SK-020) = zone Etc/GMT has no summer time, want nil"}), true),
				edit("The test has no list yet.", "harbour/harbour_test.go", "Validate(ctx, h)", "Validate(ctx, h, []string{\"SK-020\"})"),
				run("", "go test ./...", tests("harbour", []string{"TestValidate", "TestValidateFixedZone", "TestSort"}, nil), false),
			},
			answer: "Done: a fixed zone is refused unless allowFixedZone lists the harbour. SK-020 is in the sample configuration. All tests pass.",
		},
		{
			user:   "What was the id of Alder Quay again?",
			answer: "AL-009.",
		},
	}
}

func middle() []turn {
	return []turn{
		{
			user: "Next: the PDF for the fishing co-op takes eleven seconds. It was two last year. Find out why.",
			steps: []step{
				read("", "print/pdf.go", file("print", "PDF pages of tide tables.", "Pages", "DrawMonth", "Fonts", "Footer", "Compress")),
				run("", "go test -run NONE -bench PDF -cpuprofile cpu.out ./print && go tool pprof -top cpu.out", "BenchmarkPDFYear-4   1   10874211920 ns/op\nShowing top 6 nodes\n  flat%   cum%\n 61.20%  61.20%  print.Fonts\n 14.02%  75.22%  compress/flate.(*compressor).deflate\n  6.61%  81.83%  print.DrawMonth\n  2.14%  83.97%  runtime.mallocgc\n", false),
				search("Fonts takes most of it.", `Fonts\(`, matches(`fonts, err := Fonts\(ctx, harbour, rows)`, "print/pdf.go", "print/table.go", "print/pdf_test.go")),
			},
			answer: "Fonts parses the font file once for every page: 365 times in a year's table. That is 61 % of the time. Last year it was called once in Pages.",
		},
		{
			user: "Cache it, but not in a global please. We had a race there once (ticket 482).",
			steps: []step{
				edit("", "print/pdf.go", "type Printer struct {", "type Printer struct {\n\tfonts sync.Map // name -> *font, parsed once for each printer"),
				edit("", "print/pdf.go", "Fonts(ctx, harbour, rows)", "p.font(ctx, name)"),
				run("", "go test -race -bench PDF ./print", "BenchmarkPDFYear-4   1   1702214410 ns/op\n"+tests("print", []string{"TestPages", "TestDrawMonth", "TestFooter", "TestCompress", "TestFontOnce"}, nil), false),
			},
			answer: "Each Printer keeps its own fonts now; nothing is global. A year's PDF takes 1.7 s, and the race detector is quiet.",
		},
		{
			user: "Nice. The co-op also wants moon phases in the table. Is there anything for that already?",
			steps: []step{
				search("", `moon|Moon|lunar`, matches(`// lunar day in hours`, "predict/series.go")),
				read("", "predict/series.go", file("predict", "Series of predictions over days.", "LunarDay", "SpringNeap", "Window", "Extremes", "Smooth")),
			},
			answer: "Only LunarDay and SpringNeap in predict/series.go: they know the moon's age but nobody prints it. A phase is one function away.",
		},
		{
			user: "Add it: four symbols, ● new, ◐ first quarter, ○ full, ◑ last quarter. In text and in PDF.",
			steps: []step{
				edit("", "predict/series.go", "// end of series", "// Phase returns the symbol of the moon's phase at noon: ● ◐ ○ ◑, or \"\" on other days.\nfunc Phase(day time.Time) string {\n\tage := math.Mod(LunarAge(day), synodic)\n\tfor i, s := range [...]string{\"●\", \"◐\", \"○\", \"◑\"} {\n\t\tif d := math.Abs(age - float64(i)*synodic/4); d < 0.5 || d > synodic-0.5 {\n\t\t\treturn s\n\t\t}\n\t}\n\treturn \"\"\n}"),
				read("", "print/table.go", file("print", "Tide tables as plain text.", "Table", "Header", "Row", "Pad", "Wrap", "Legend")),
				edit("", "print/table.go", "fmt.Fprintf(w, \"%2d  \", day)", "fmt.Fprintf(w, \"%2d %-1s \", day, predict.Phase(date))"),
				edit("", "print/pdf.go", "p.cell(day)", "p.cell(day, predict.Phase(date))"),
				run("", "go test ./predict ./print", tests("predict", []string{"TestPhase", "TestLunarDay", "TestSpringNeap", "TestExtremes"}, nil)+tests("print", []string{"TestTable", "TestRow", "TestPages"}, map[string]string{"TestPages": "pdf_test.go:41: glyph U+25D0 is not in the font"}), true),
			},
			answer: "Text works. The PDF font has no ◐ and ◑. I can draw them as circles with a filled half, or we ship a font that has them. Which one?",
		},
		{
			user: "Draw them. A font is another licence to read.",
			steps: []step{
				edit("", "print/pdf.go", "func DrawMonth(", "// moon draws a phase as a circle of radius r with the dark half filled.\nfunc (p *Printer) moon(x, y, r float64, phase string) {\n\tp.circle(x, y, r)\n\tswitch phase {\n\tcase \"●\":\n\t\tp.fill(x, y, r, 0, 360)\n\tcase \"◐\":\n\t\tp.fill(x, y, r, 90, 270)\n\tcase \"◑\":\n\t\tp.fill(x, y, r, 270, 450)\n\t}\n}\n\nfunc DrawMonth("),
				run("", "go test ./print", tests("print", []string{"TestTable", "TestRow", "TestPages", "TestMoon", "TestDrawMonth", "TestFooter"}, nil), false),
			},
			answer: "The PDF draws the phases itself; no new font. Tests pass.",
		},
		{
			user:   "Remind me which ticket the race was?",
			answer: "Ticket 482: the global font cache.",
		},
		{
			user: "Now the web cache. Skipper Olga says the page showed yesterday's table at 00:20. Look at web/cache.go.",
			steps: []step{
				read("", "web/cache.go", file("web", "Cache of rendered tables.", "Key", "Get", "Put", "Expire", "Sweep")),
				read("", "web/handler.go", file("web", "HTTP handlers.", "Table", "PDF", "Health", "Redirect", "Errors")),
				run("", "curl -sI localhost:8080/t/PV-114", "HTTP/1.1 200 OK\nCache-Control: max-age=86400\nX-Table-Day: 2026-03-02\nX-Now: 2026-03-03T00:21:09+01:00\nAge: 84009\n", false),
			},
			answer: "The page is cached for 24 hours from the first visit, not until midnight at the harbour. Whoever looks shortly after midnight gets yesterday's table.",
		},
		{
			user: "Expire at local midnight of the harbour then, and add a minute so that the prediction job has finished.",
			steps: []step{
				edit("", "web/cache.go", "ttl: 24 * time.Hour", "until: midnight(now, zone).Add(time.Minute)"),
				edit("", "web/handler.go", "max-age=86400", "max-age=%d"),
				run("", "go test ./web", tests("web", []string{"TestKey", "TestExpireAtMidnight", "TestExpireSummerTime", "TestSweep", "TestHealth"}, map[string]string{"TestExpireSummerTime": "cache_test.go:67: expires 2026-03-29 23:01, want 2026-03-30 00:01"}), true),
				edit("The day of the change has 23 hours.", "web/cache.go", "now.Truncate(24*time.Hour).Add(24*time.Hour)", "time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, zone)"),
				run("", "go test ./web", tests("web", []string{"TestKey", "TestExpireAtMidnight", "TestExpireSummerTime", "TestSweep", "TestHealth"}, nil), false),
			},
			answer: "Tables expire at 00:01 harbour time, also on the days when clocks change. Browsers get the same time as max-age.",
		},
	}
}

func evening() []turn {
	names := []string{"TestZoneOf", "TestShift", "TestMigrate", "TestValidate", "TestPages", "TestMoon", "TestPhase", "TestExpireAtMidnight", "TestExpireSummerTime", "TestImport"}
	return []turn{
		{
			user: "The hydrographic office sends constants as CSV now: harbour id, constituent, amplitude in metres, phase in degrees. Please write an importer. Their sample is in testdata/constants.csv.",
			steps: []step{
				run("", "head -20 testdata/constants.csv", "harbour;constituent;amplitude;phase\nPV-114;M2;1,032;71,4\nPV-114;S2;0,361;98,0\nPV-114;N2;0,214;53,8\nPV-114;K2;0,101;95,5\nPV-114;O1;0,062;318,1\nPV-114;K1;0,071;59,9\nAL-009;M2;0,988;74,2\nAL-009;S2;0,340;101,7\nAL-009;N2;0,203;55,1\nAL-009;K2;0,094;99,0\nSK-020;M2;1,544;160,3\nSK-020;S2;0,520;198,8\nSK-020;N2;0,301;139,6\nSK-020;M4;0,044;12,7\n", false),
				read("Semicolons, and commas for the decimals.", "store/store.go", file("store", "Package store keeps harbours and constants in SQLite.", "Open", "Harbours", "Constants", "PutConstants", "Close")),
				edit("", "store/import.go", "", "package store\n\n// Import reads constants from CSV with semicolons and decimal commas, all or nothing.\nfunc Import(ctx context.Context, db *sql.DB, r io.Reader) (int, error) {\n\tc := csv.NewReader(r)\n\tc.Comma = ';'\n\theader, err := c.Read()\n\tif err != nil {\n\t\treturn 0, fmt.Errorf(\"store: import: header: %w\", err)\n\t}\n\tif !slices.Equal(header, columns) {\n\t\treturn 0, fmt.Errorf(\"store: import: header is %q, want %q\", header, columns)\n\t}\n\ttx, err := db.BeginTx(ctx, nil)\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\tdefer tx.Rollback()\n\tn := 0\n\tfor {\n\t\trow, err := c.Read()\n\t\tif err == io.EOF {\n\t\t\treturn n, tx.Commit()\n\t\t}\n\t\tif err != nil {\n\t\t\treturn 0, err\n\t\t}\n\t\tif err := put(ctx, tx, row); err != nil {\n\t\t\treturn 0, fmt.Errorf(\"store: import: line %d: %w\", n+2, err)\n\t\t}\n\t\tn++\n\t}\n}"),
				run("", "go test ./store", tests("store", []string{"TestImport", "TestImportBadNumber", "TestImportHeader", "TestMigrate"}, nil), false),
			},
			answer: "store.Import reads their format: semicolons, decimal commas, all or nothing, with the line number in errors. The sample's 14 rows go in.",
		},
		{
			user: "What happens with an unknown constituent, such as M4 for Skerry Bay?",
			steps: []step{
				search("", `"M2", "S2"`, matches(`var known = []string{"M2", "S2", "N2", "K2", "O1", "K1"}`, "predict/predict.go")),
			},
			answer: "predict knows six constituents and skips the rest silently. M4 would be stored and never used: in Skerry Bay about 4 cm.",
		},
		{
			user: "4 cm is a lot over the Skerry sill. Support M4 (speed 57.9682 degrees per hour) and make unknown ones an error in the import.",
			steps: []step{
				edit("", "predict/predict.go", `"O1", "K1"}`, `"O1", "K1", "M4"}`),
				edit("", "predict/predict.go", `"K1": 15.0411,`, "\"K1\": 15.0411,\n\t\"M4\": 57.9682,"),
				edit("", "store/import.go", "if err := put(ctx, tx, row); err != nil {", "if !predict.Known(row[1]) {\n\t\t\treturn 0, fmt.Errorf(\"store: import: line %d: unknown constituent %q (known: %v)\", n+2, row[1], predict.Names())\n\t\t}\n\t\tif err := put(ctx, tx, row); err != nil {"),
				run("", "go test ./...", tests("store", []string{"TestImport", "TestImportUnknown", "TestMigrate"}, nil)+tests("predict", []string{"TestHighWater", "TestLowWater", "TestM4", "TestPhase"}, nil), false),
			},
			answer: "M4 counts now, with 57.9682 degrees per hour. Unknown constituents stop the import with line, name and what is known.",
		},
		{
			user: "Compare the prediction for Skerry Bay with the gauge of last week please. testdata/gauge-SK-020.txt has the readings.",
			steps: []step{
				run("", "go run ./cmd/tidetable compare -harbour SK-020 -gauge testdata/gauge-SK-020.txt", table("time (UTC) | gauge m | predicted m | difference cm", "2026-02-24 00:10 | 4.31 | 4.29 | 2", "2026-02-24 06:22 | 0.88 | 0.91 | -3", "2026-02-24 12:35 | 4.40 | 4.37 | 3", "2026-02-24 18:47 | 0.79 | 0.80 | -1", "2026-02-25 00:58 | 4.52 | 4.49 | 3", "2026-02-25 07:11 | 0.70 | 0.74 | -4", "2026-02-25 13:24 | 4.58 | 4.57 | 1", "2026-02-25 19:36 | 0.66 | 0.65 | 1", "2026-02-26 01:48 | 4.66 | 4.62 | 4", "2026-02-26 08:00 | 0.61 | 0.63 | -2", "2026-02-26 14:12 | 4.63 | 4.64 | -1", "2026-02-26 20:24 | 0.64 | 0.62 | 2"), false),
			},
			answer: "Within 4 cm everywhere, 2 cm on average. Before M4 the worst was 8 cm. High water is mostly a little higher than predicted: air pressure, I would guess.",
		},
		{
			user: "Good enough. Write the release notes, one line each, for the whole afternoon.",
			steps: []step{
				run("", "git log --oneline -12", "9f21c0e predict: M4\n71b0aa4 store: refuse unknown constituents\n5c88e13 store: import constants from CSV\nd0a7712 web: expire at local midnight\n2be94f1 print: draw moon phases in PDF\n88d1f60 predict: moon phases\n14ac3d7 print: parse fonts once for each printer\nc3309be harbour: refuse fixed zones unless allowed\n6a5e2f8 store: migration 7, zones of PV-114 and AL-009\n", false),
				edit("", "CHANGELOG.md", "## Unreleased", "## Unreleased\n\n- Porto Velo and Alder Quay follow summer time.\n- Harbours with a fixed zone must be listed under allowFixedZone.\n- PDF of a year in 2 s instead of 11.\n- Moon phases in text and PDF.\n- Tables change at midnight of the harbour.\n- Constants can be imported from CSV; M4 is known."),
			},
			answer: "Six lines are in CHANGELOG.md: zones, allowFixedZone, faster PDF, moon phases, midnight, CSV import with M4.",
		},
		{
			user: "Before I deploy: run everything once more, and tell me which harbour must stay on UTC, so that I don't \"fix\" it by accident.",
			steps: []step{
				run("", "go vet ./... && go test -race ./...", tests("harbour", names[:2], nil)+tests("store", names[2:3], nil)+tests("print", names[4:6], nil)+tests("web", names[7:9], nil), false),
				search("", "on purpose", matches("SK-020 (Skerry Bay) has Etc/GMT on purpose: its pilots work in UTC.", "harbour/zone.go")),
			},
			answer: "Everything passes, with the race detector. Skerry Bay (SK-020) stays on Etc/GMT: its pilots work in UTC, and allowFixedZone lists it.",
		},
		{
			user:   "Perfect. Obrigada!",
			answer: "You're welcome, Ines. Fair winds!",
		},
	}
}
