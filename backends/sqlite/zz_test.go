package sqlite_test
import ("testing";"time")
func TestZZ(t *testing.T){ s:=open(t,config(t)); 
for n:=0;n<30000;n+=500 { cs:=chats(t,n,500); t0:=time.Now(); mustAppend(t,s,cs...); if n%5000==0 {t.Log(n,time.Since(t0))} } }
