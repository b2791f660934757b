# Reads what `go test -json` writes: counts packages, shows what failed tests said, and lists by name the tests that were not run, with what they lack.
# Checks of the conformance suites that a part does not claim are no tests that lack something. With -v left=FILE the packages of those that were not run are written there.
function field(name,   at, rest) {
  at = index($0, "\"" name "\":\"")
  if (!at) return ""
  rest = substr($0, at + length(name) + 4)
  match(rest, /^([^"\\]|\\.)*/)
  return substr(rest, 1, RLENGTH)
}
function plain(text) {
  gsub(/\\n/, "\n", text); gsub(/\\t/, "\t", text); gsub(/\\u003c/, "<", text); gsub(/\\u003e/, ">", text); gsub(/\\u0026/, "\\&", text); gsub(/\\"/, "\"", text); gsub(/\\\\/, "\\", text)
  return text
}
!/^\{/ { print; next }
{
  action = field("Action"); package = field("Package"); test = field("Test"); key = package " " test
}
action == "output" || action == "build-output" {
  text = field("Output")
  said[key] = said[key] text
  if (match(text, /not run: ([^\\]|\\[^n])*/)) why[key] = substr(text, RSTART + 9, RLENGTH - 9)
}
action == "run" { open[key] = 1 }
(action == "pass" || action == "fail" || action == "skip") && test != "" { delete open[key] }
action == "fail" && test == "" {
  # What hung or brought the process down never ended: it is what the package failed of.
  for (one in open) if (index(one, package " ") == 1) { printf "%s", plain(said[one]); print "FAIL " one " (did not end)"; delete open[one] }
}
action == "build-output" { printf "%s", plain(text) }
action == "pass" && test == "" { passed++ }
action == "fail" { failed++; printf "%s", plain(said[key]); print "FAIL " key }
action == "skip" && test != "" && why[key] !~ /^needs \[|^not claimed|^it is the body of/ {
  lacking[package]
  sub(/.*contextengine\/contextengine\//, "", package)
  skipped[++n] = "  " package " " test ": " (why[key] == "" ? "it does not say why" : plain(why[key]))
}
END {
  printf "%d packages passed, %d tests and packages failed\nnot run, for want of what they need: %d tests\n", passed, failed, n
  for (i = 1; i <= n; i++) print skipped[i]
  if (left != "") {
    printf "" > left
    for (package in lacking) print package > left
  }
}
