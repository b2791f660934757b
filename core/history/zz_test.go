package history
import ("testing";"time";"github.com/contextengine/contextengine/core/message")
func TestZZ(t *testing.T){
 most:=0
 for seed:=range int64(20000){ s:=random(seed,30+int(seed%150)); msgs:=s.conversation()
  for _,p:=range policies(){ m:=msgs; n:=0
   for { next:=m; if p.FilterHeartbeats {next=FilterHeartbeats(next)}; next=RewriteCallIDs(ProviderTurns(RepairPairs(Sanitize(next,p),p,false),p),p); if same(next,m){break}; m=next; n++; if n>16 {t.Fatal(seed)}}
   most=max(most,n)}}
 t.Log("most passes",most)
 var big []message.Message
 for range 20000 { big=append(big,user("x"),calls(think("t"),call("a"),call("a")),tool(result("a")), says("y")) }
 var noown []message.Message
 for range 30000 { noown=append(noown,calls(call("a"))) }
 for range 30000 { noown=append(noown,tool(result("b"))) }
 one:=[]message.Message{user("x"),{Role:message.Assistant}}
 for range 30000 { one[1].Parts=append(one[1].Parts,call("a")); one=append(one,tool(result("a"))) }
 for name,in:=range map[string][]message.Message{"big":big,"noown":noown,"one":one}{ for pn,p:=range policies(){ st:=time.Now(); o:=Apply(in,p); if d:=time.Since(st); d>300*time.Millisecond {t.Log(name,pn,d,len(o))}}}
}
