#include "kubelet/testing/containerd.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "kubelet/cri/grpc_runtime.h"
#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/linux/mount.h"

namespace keelson::kubelet {

namespace {

constexpr char kImages[] = R"sh(set -e
cd "$1"
cat > pause.c <<'END'
#include <signal.h>
#include <unistd.h>
static void end(int signal) { (void)signal; _exit(0); }
int main(void) { signal(SIGTERM, end); signal(SIGINT, end); for (;;) pause(); }
END
gcc -Os -static -o pause pause.c
mkdir -p busybox/bin busybox/tmp busybox/etc
cp "$(command -v busybox)" busybox/bin/busybox
for name in sh cat echo sleep ls id env touch nc httpd mount hostname stat; do ln -sf busybox busybox/bin/$name; done
umoci init --layout oci
umoci new --image oci:pause
umoci insert --image oci:pause pause /pause
umoci config --image oci:pause --config.entrypoint /pause
umoci new --image oci:busybox
umoci insert --image oci:busybox busybox/bin /bin
umoci insert --image oci:busybox busybox/tmp /tmp
umoci insert --image oci:busybox busybox/etc /etc
umoci config --image oci:busybox --config.cmd sh --config.env PATH=/bin
for name in pause busybox; do
  skopeo --insecure-policy copy -q oci:oci:$name oci-archive:$name.tar:docker.io/library/$name:test
done
)sh";

std::string Config(const std::string& dir, const std::string& socket, bool systemd_cgroups) {
  return "version = 2\nroot = \"" + dir + "/root\"\nstate = \"" + dir + "/state\"\n" +
         "disabled_plugins = [\"io.containerd.internal.v1.tracing\", "
         "\"io.containerd.tracing.processor.v1.otlp\"]\n" +
         "[grpc]\n  address = \"" + socket + "\"\n" +
         "[plugins.\"io.containerd.internal.v1.opt\"]\n  path = \"" + dir + "/opt\"\n" +
         "[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"docker.io/library/pause:test\"\n" +
         "  restrict_oom_score_adj = true\n  disable_apparmor = true\n  netns_mounts_under_state_dir = "
         "true\n" +
         "[plugins.\"io.containerd.grpc.v1.cri\".cni]\n  bin_dir = \"/usr/lib/cni\"\n  conf_dir = \"" + dir +
         "/cni\"\n" +
         "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\n  runtime_type = "
         "\"io.containerd.runc.v2\"\n" +
         "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]\n  SystemdCgroup = " +
         (systemd_cgroups ? "true\n" : "false\n");
}

std::string Network(const std::string& dir) {
  return R"({"cniVersion":"0.4.0","name":"test","plugins":[{"type":"ptp","ipam":{"type":"host-local","dataDir":")" +
         dir + R"(/ipam","ranges":[[{"subnet":"10.213.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]})";
}

pid_t Spawn(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = ::fork();
  if (pid != 0) return pid;
  int out = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

int RunCommand(const std::vector<std::string>& command, const std::string& log) {
  int status = -1;
  pid_t pid = Spawn(command, log);
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The images as files, made once for all tests of a process.
class ImageFiles {
 public:
  ImageFiles() {
    char name[] = "/tmp/kubelet_images.XXXXXX";
    if (::mkdtemp(name) == nullptr) return;
    dir_ = name;
    made_ = WriteFile(dir_ + "/images.sh", kImages) &&
            RunCommand({"sh", dir_ + "/images.sh", dir_}, dir_ + "/log") == 0;
  }
  ~ImageFiles() {
    if (!dir_.empty()) (void)RemoveTree(dir_);
  }
  Result<> ImportInto(const std::string& socket, const std::string& log) const {
    if (!made_) {
      return Error(Code::kInternal,
                   "cannot make images: " + ReadFile(dir_ + "/log").value_or("no directory"));
    }
    for (const char* name : {"/pause.tar", "/busybox.tar"}) {
      if (RunCommand({"ctr", "--address", socket, "-n", "k8s.io", "images", "import", dir_ + name}, log) !=
          0) {
        return Error(Code::kInternal, "cannot import images: " + ReadFile(log).value_or(""));
      }
    }
    return {};
  }

 private:
  std::string dir_;
  bool made_ = false;
};

}  // namespace

std::string Containerd::Missing() {
  if (::geteuid() != 0) return "needs root";
  for (const char* tool : {"containerd", "ctr", "runc", "umoci", "skopeo", "gcc", "busybox", "ip"}) {
    if (RunCommand({"sh", "-c", std::string("command -v ") + tool}, "/dev/null") != 0) {
      return std::string("needs ") + tool;
    }
  }
  if (!PathExists("/usr/lib/cni/ptp")) return "needs the CNI plugin ptp in /usr/lib/cni";
  return "";
}

Result<std::unique_ptr<Containerd>> Containerd::Start(const std::string& dir, bool systemd_cgroups) {
  if (::unshare(CLONE_NEWNET) != 0) return ErrnoError("make network namespace");
  std::string log = dir + "/log";
  if (RunCommand({"ip", "link", "set", "lo", "up"}, log) != 0) {
    return Error(Code::kInternal, "cannot set lo up");
  }
  std::unique_ptr<Containerd> out(new Containerd);
  out->dir_ = dir;
  out->socket_ = dir + "/containerd.sock";
  KEELSON_RETURN_IF_ERROR(MakeDirs(dir + "/cni"));
  KEELSON_RETURN_IF_ERROR(WriteFile(dir + "/cni/10-test.conflist", Network(dir)));
  KEELSON_RETURN_IF_ERROR(WriteFile(dir + "/config.toml", Config(dir, out->socket_, systemd_cgroups)));
  out->pid_ = Spawn({"containerd", "--config", dir + "/config.toml"}, log);
  auto services = cri::NewGrpcServices({out->socket_, "", std::chrono::seconds(5)});
  Mutex mutex;
  CondVar cv;
  Result<cri::Version> version = Error(Code::kUnavailable, "not started");
  for (int i = 0; i < 200 && !version; ++i) {
    version = services.runtime->GetVersion();
    MutexLock lock(mutex);
    if (!version) cv.wait_for(mutex, std::chrono::milliseconds(100));
  }
  if (!version) return version.error().Wrap("start containerd, see " + log);
  static const ImageFiles images;
  KEELSON_RETURN_IF_ERROR(images.ImportInto(out->socket_, log));
  return out;
}

Containerd::~Containerd() {
  if (pid_ > 0) {
    auto services = cri::NewGrpcServices({socket_, "", std::chrono::seconds(20)});
    if (auto sandboxes = services.runtime->ListPodSandbox({})) {
      for (const auto& sandbox : *sandboxes) {
        (void)services.runtime->StopPodSandbox(sandbox.id);
        (void)services.runtime->RemovePodSandbox(sandbox.id);
      }
    }
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  if (auto points = linux::MountPointsUnder(dir_)) {
    for (const std::string& point : *points) (void)linux::Unmount(point, true);
  }
  (void)RemoveTree(dir_);
}

}  // namespace keelson::kubelet
