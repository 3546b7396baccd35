# Records test/state/testdata/oldstate with the programs of an older tree: python3 record.py DIR-OF-PROGRAMS OUT WORK; beside it lies config.toml
import json,os,shutil,signal,socket,subprocess,sys,threading,time,http.server
progs,out=sys.argv[1],os.path.abspath(sys.argv[2])
W=sys.argv[3]
shutil.rmtree(W,ignore_errors=True); os.makedirs(W,0o700)
os.makedirs(W+'/home',0o700); os.makedirs(W+'/os',0o700)
open(W+'/os/boot.md','w').write('---\nname: boot\n---\nhello\n')
subprocess.run(['ssh-keygen','-q','-t','ed25519','-N','','-C','oldstate','-f',W+'/key'],check=True)
os.remove(W+'/key.pub')
config=open(os.path.dirname(os.path.abspath(__file__))+'/config.toml').read()
open(W+'/config.toml','w').write(config.replace('@DIR@',W))
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self,*a): pass
    def do_GET(self):
        if self.path=='/slow': time.sleep(30); return
        b=b'{"answer":42}'
        self.send_response(200); self.send_header('Content-Type','application/json'); self.send_header('Content-Length',str(len(b))); self.end_headers(); self.wfile.write(b)
srv=http.server.ThreadingHTTPServer(('127.0.0.1',0),H); srv.daemon_threads=True
threading.Thread(target=srv.serve_forever,daemon=True).start()
URL='http://127.0.0.1:%d'%srv.server_address[1]
def start(state,run):
    env={'HOME':W+'/home','PATH':os.environ['PATH'],'PWOS_RUNTIME_DIR':run,'PWOS_STATE_DIR':state,'PWOS_CONFIG':W+'/config.toml','PWOS_READY_FD':''}
    env.pop('PWOS_READY_FD')
    p=subprocess.Popen([progs+'/pwosd'],env=env,stdout=subprocess.DEVNULL,stderr=open(W+'/log','ab'))
    import atexit; atexit.register(p.kill)
    for _ in range(200):
        if p.poll() is not None: raise SystemExit('daemon ended: '+open(W+'/log').read()[-2000:])
        try:
            s=socket.socket(socket.AF_UNIX); s.connect(run+'/kernel.sock'); break
        except OSError: time.sleep(.05)
    return p,Conn(run)
n=0
class Conn:
    def __init__(c,run):
        c.s=socket.socket(socket.AF_UNIX); c.s.connect(run+'/kernel.sock'); c.f=c.s.makefile('rwb')
        c.f.readline(); c.send({'kind':'reply','type':'Syscall.Authenticate','data':{},'metadata':{'id':'a','timestamp':1}})
    def send(c,m): c.f.write(json.dumps(m,separators=(',',':')).encode()+b'\n'); c.f.flush()
    def call(c,kind,typ,data,key=None):
        global n; n+=1
        md={'id':'m%d'%n,'timestamp':1735000000000+n}
        if key: md['idempotencyKey']=key
        m={'kind':kind,'type':typ,'data':data,'metadata':md}
        c.send(m); a=json.loads(c.f.readline())
        return m,{'kind':a['kind'],'data':a['data']}
def C(c,typ,data,key=None,want=None):
    m,a=c.call('command',typ,data,key)
    code=a['data'].get('code',0) if a['kind']=='error' else 0
    if code!=(want or 0): raise SystemExit('%s %s: %s'%(typ,data,a))
    return a['data']
def Q(c,typ,data,want=None):
    m,a=c.call('query',typ,data)
    code=a['data'].get('code',0) if a['kind']=='error' else 0
    if code!=(want or 0): raise SystemExit('%s %s: %s'%(typ,data,a))
    return a['data']
keyed=[]
def K(c,typ,data,key,want=None):
    keyed.append((typ,data,key)); return C(c,typ,data,key,want)
S,R=W+'/s',W+'/r'
p,c=start(S,R)
# memory
for k,v in [('notes/1',{'text':'hello','n':1.50}),('notes/2',[1,2,3]),('notes/3',None),('a/b/c','deep'),('große/ключ','ü')]: C(c,'Memory.Set',{'key':k,'value':v})
C(c,'Memory.Set',{'key':'notes/1','value':{'text':'changed'}})
C(c,'Memory.Delete',{'key':'notes/2'})
C(c,'Memory.Delete',{'key':'notes/404'},want=404)
for _ in range(100):
    m,a=c.call('command','Crypto.Seal',{'plaintext':'swordfish'})
    if a['kind']=='reply': break
    time.sleep(.1)
sealed=a['data'].get('value') or a['data'].get('sealed') or a['data']
print(a)
if isinstance(sealed,dict): sealed=[v for v in sealed.values() if str(v).startswith('pwenc:')][0]
C(c,'Memory.Set',{'key':'vault/token','value':sealed})
C(c,'Memory.Set',{'key':'vault/bad','value':'plain'},want=422)
# processes and grants
quota={'gpu':4,'tokens':100}
def spawn(name,pid=None,caps=None,**o):
    d={'child_agent_id':name,**o}
    if pid: d['pid']=pid
    if caps is not None: d['capabilities']=caps
    return C(c,'Syscall.Spawn',d)['child_pid']
a1=spawn('alpha',caps={'allowed_syscalls':['*'],'resource_quotas':quota},role='lead',intent='to lead',priority='HIGH')
a2=spawn('beta',a1,{'allowed_syscalls':['Memory.*','Syscall.SendMsg','Ipc.*','Syscall.Alloc','Syscall.Release'],'resource_quotas':{'gpu':2}})
a3=spawn('gamma',a1); C(c,'Syscall.Terminate',{'target_pid':a3,'reason':'done'})
a4=spawn('delta',caps={'allowed_syscalls':['Memory.Get'],'resource_quotas':{}})
C(c,'Capability.GrantDefault',{'pid':a4})
C(c,'Capability.Grant',{'pid':a4,'allowed_syscalls':['Memory.Set'],'mode':'add'})
a5=spawn('epsilon'); C(c,'Capability.Grant',{'pid':a5,'allowed_syscalls':['Http.Fetch','Syscall.Echo'],'http':{'hosts':[URL[7:]],'plain':True},'expires_at_tick':1000})
a6=spawn('zeta',caps={'allowed_syscalls':['Syscall.Echo'],'resource_quotas':{}}); C(c,'Capability.Revoke',{'pid':a6})
# resources
C(c,'Syscall.Alloc',{'resource_id':'gpu','amount':3,'pid':a1}); C(c,'Syscall.Alloc',{'resource_id':'gpu','amount':0.5,'pid':a2})
C(c,'Syscall.Alloc',{'resource_id':'tokens','amount':60,'pid':a1}); C(c,'Syscall.Release',{'resource_id':'tokens','amount':10,'pid':a1})
C(c,'Syscall.Alloc',{'resource_id':'gpu','amount':50,'pid':a1},want=429)
C(c,'Syscall.Release',{'resource_id':'gpu','amount':50,'pid':a1},want=409)
# deltas
for t in range(1,6):
    C(c,'Clock.Advance',{'ticks':1}); C(c,'Syscall.CommitDelta',{'pid':a1,'changes':{'step':t,'x':{'y%d'%t:t}},'resource_changes':{'gold':t},'relationship_changes':{'beta':0.5}})
C(c,'Syscall.Checkpoint',{'pid':a1}); C(c,'Syscall.Rollback',{'pid':a1,'to_tick':3})
# mail
for i in range(4): C(c,'Syscall.SendMsg',{'pid':a1,'receiver_pid':a2,'intent':'work','payload':{'i':i},'priority':'URGENT' if i==2 else 'NORMAL'})
C(c,'Ipc.Receive',{'pid':a2,'max':1})
C(c,'Syscall.SendMsg',{'receiver_pid':a4,'intent':'gossip','payload':1})
C(c,'Ipc.Broadcast',{'pid':a1,'intent':'all','payload':'hi'})
C(c,'Syscall.SendMsg',{'pid':a2,'receiver_pid':0,'payload':'to the operator'})
sub=Conn(R); m,a=sub.call('command','Ipc.Subscribe',{'pid':a2,'ack':True}); print('subscribe',a)
pushed=json.loads(sub.f.readline()); print('pushed',pushed)
sub.s.close()
m,a=c.call('command','Ipc.Ack',{'pid':a2,'msg_ids':[pushed['data']['msg_id']]}); print('ack',a)
# denied
C(c,'Http.Fetch',{'pid':a6,'url':URL+'/'},want=403); C(c,'Memory.Delete',{'pid':a4,'key':'notes/1'},want=403)
Q(c,'Memory.Get',{'key':'nope'},want=404)
# idempotency
K(c,'Memory.Set',{'key':'once','value':1},'k-set'); C(c,'Memory.Set',{'key':'once','value':1},'k-set'); C(c,'Memory.Set',{'key':'once','value':2},'k-set',want=409)
K(c,'Memory.Delete',{'key':'not/there'},'k-404',want=404)
K(c,'Syscall.Release',{'resource_id':'gpu','amount':99,'pid':a1},'k-409',want=409)
K(c,'Memory.Set',{'key':'vault/x','value':'plain'},'k-422',want=422)
K(c,'Memory.Set',{'pid':a6,'key':'x','value':1},'k-403',want=403)
K(c,'Syscall.Spawn',{'child_agent_id':'eta'},'k-spawn')
K(c,'Http.Fetch',{'pid':a5,'url':URL+'/'},'k-fetch')
C(c,'Http.Fetch',{'pid':a5,'url':URL+'/other'})
m,a=c.call('command','Kernel.Ingest',{'uri':'os:///boot.md','pid':a1}); print('ingest',a)
# end cleanly: a snapshot
c.s.close(); p.send_signal(signal.SIGTERM); p.wait()
p,c=start(S,R)
C(c,'Memory.Set',{'key':'once','value':1},'k-set'); C(c,'Memory.Set',{'key':'once','value':3},'k-set',want=409)
C(c,'Memory.Set',{'key':'after','value':'the snapshot'}); C(c,'Memory.Delete',{'key':'a/b/c'})
C(c,'Clock.Advance',{'ticks':2}); C(c,'Syscall.Terminate',{'target_pid':a4}); C(c,'Ipc.Receive',{'pid':a2,'max':1})
K(c,'Memory.Set',{'key':'late','value':[True]},'k-late')
c.send({'kind':'command','type':'Http.Fetch','data':{'pid':a5,'url':URL+'/slow'},'metadata':{'id':'slow','timestamp':1,'idempotencyKey':'k-slow'}})
keyed.append(('Http.Fetch',{'pid':a5,'url':URL+'/slow'},'k-slow'))
time.sleep(1.5); p.kill(); p.wait(); c.s.close()
# what is kept
shutil.rmtree(out,ignore_errors=True); os.makedirs(out)
shutil.copytree(S,out+'/state'); shutil.copy(W+'/key',out+'/key'); open(out+'/config.toml','w').write(config); shutil.copytree(W+'/os',out+'/os')
# what the older programs answer of it
S2,R2=W+'/s2',W+'/r2'
shutil.copytree(S,S2)
env={'HOME':W+'/home','PATH':os.environ['PATH'],'PWOS_RUNTIME_DIR':R2,'PWOS_STATE_DIR':S2,'PWOS_CONFIG':W+'/config.toml'}
print(subprocess.run([progs+'/pwos','restore','--here'],env=env,capture_output=True,text=True))
p,c=start(S2,R2)
qs=[('Memory.List',{}),('Clock.Get',{}),('Process.List',{}),('Capability.Get',{'pid':99}),('Syscall.GetState',{'target_pid':a1,'at_tick':2})]
qs+=[('Memory.Get',{'key':k}) for k in ['notes/1','notes/2','notes/3','große/ключ','vault/token','once','after','late','a/b/c']]
qs+=[('Capability.Get',{'pid':i}) for i in range(1,9)]+[('Process.Get',{'pid':i}) for i in range(1,9)]+[('Syscall.GetState',{'target_pid':i}) for i in range(1,9)]
qs+=[('Syscall.Query',{'resource_id':r}) for r in ['gpu','tokens']]
seq=sum(1 for f in sorted(os.listdir(out+'/state/journal')) if f.endswith('.ndjson') for _ in open(out+'/state/journal/'+f))
since=1
qs+=[('Audit.Log',{'since_seq':s,'limit':20}) for s in range(1,seq-20,20)]
with open(out+'/queries.ndjson','w') as f:
    for typ,data in qs:
        m,a=c.call('query',typ,data); f.write(json.dumps({'frame':m,'answer':a},ensure_ascii=False)+'\n')
with open(out+'/mail.ndjson','w') as f:
    for typ,data in [('Ipc.Receive',{'pid':i}) for i in range(0,8)]:
        m,a=c.call('command',typ,data); f.write(json.dumps({'frame':m,'answer':a},ensure_ascii=False)+'\n')
with open(out+'/repeats.ndjson','w') as f:
    for typ,data,key in keyed:
        m,a=c.call('command',typ,data,key); f.write(json.dumps({'frame':m,'answer':a},ensure_ascii=False)+'\n')
        d=dict(data); d['pid']=a2
        m,a=c.call('command',typ,dict(sorted(data.items(),reverse=True)) if len(data)>1 else {**data,'pid':0},key); f.write(json.dumps({'frame':m,'answer':a},ensure_ascii=False)+'\n')
c.s.close(); p.send_signal(signal.SIGTERM); p.wait()
