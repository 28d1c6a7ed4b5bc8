// crictl's verbs of nodectl on a containerd with runc, and beside crictl where there is one.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>
#include <functional>

#include "kubelet/testing/containerd.h"
#include "lib/base/file.h"
#include "lib/base/free_port.h"
#include "lib/base/mutex.h"
#include "lib/base/text.h"

namespace keelson {
namespace {

class CrictlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = kubelet::Containerd::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    char name[] = "/tmp/nodectl_crictl.XXXXXX";
    dir_ = ::mkdtemp(name);
    ASSERT_EQ(::chmod(dir_.c_str(), 0755), 0);
    auto started = kubelet::Containerd::Start(dir_);
    ASSERT_TRUE(started) << started.error().message();
    containerd_ = *std::move(started);
    ASSERT_TRUE(WriteFile(dir_ + "/crictl.yaml",
                          "runtime-endpoint: unix://" + containerd_->socket() + "\ntimeout: 60\n"));
    ::setenv("CRI_CONFIG_FILE", (dir_ + "/crictl.yaml").c_str(), 1);
    ASSERT_TRUE(WriteFile(
        dir_ + "/pod.yaml",
        "metadata: {name: web, namespace: default, uid: u1}\nlog_directory: " + dir_ + "/logs\nlinux: {}\n"));
    ASSERT_TRUE(WriteFile(
        dir_ + "/main.json",
        R"({"metadata": {"name": "main"}, "image": {"image": "docker.io/library/busybox:test"}, "log_path": "main.log",
            "command": ["sh", "-c", "echo hello $WHO; echo bad >&2; mkdir -p /tmp/w; echo page > /tmp/w/page;
                         busybox httpd -p 8080 -h /tmp/w; while true; do sleep 0.1; done"],
            "envs": [{"key": "WHO", "value": "world"}],
            "labels": {"io.kubernetes.pod.name": "web"}, "linux": {}})"));
  }
  void TearDown() override {
    containerd_.reset();
    ::unsetenv("CRI_CONFIG_FILE");
  }

  struct Outcome {
    int code = -1;
    std::string output;  // both streams
  };
  static Outcome Shell(const std::string& command) {
    Outcome out;
    FILE* pipe = ::popen(("( " + command + " ) 2>&1").c_str(), "r");
    if (!pipe) return out;
    char piece[4096];
    for (size_t got = 0; (got = ::fread(piece, 1, sizeof(piece), pipe)) > 0;) out.output.append(piece, got);
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) out.code = WEXITSTATUS(status);
    return out;
  }
  static std::string Nodectl(const std::string& words) {
    const Outcome out = Shell(std::string(KEELSON_NODECTL) + " " + words);
    EXPECT_EQ(out.code, 0) << words << ": " << out.output;
    return std::string(TrimRight(out.output));
  }
  // Polls for what has no event. False after 30 s.
  static bool Eventually(const std::function<bool()>& holds) {
    Mutex mutex;
    CondVar changed;
    for (int i = 0; i < 300; ++i) {
      if (holds()) return true;
      MutexLock lock(mutex);
      changed.wait_for(mutex, std::chrono::milliseconds(100));
    }
    return false;
  }

  std::string dir_;
  std::unique_ptr<kubelet::Containerd> containerd_;
};

TEST_F(CrictlTest, RunsLooksIntoAndRemovesAPod) {
  const std::string pod = Nodectl("runp " + dir_ + "/pod.yaml");
  ASSERT_EQ(pod.size(), 64u) << pod;
  const std::string id = Nodectl("create " + pod + " " + dir_ + "/main.json " + dir_ + "/pod.yaml");
  const std::string shortened = id.substr(0, 13);
  EXPECT_EQ(Nodectl("ps -q"), "");
  EXPECT_EQ(Nodectl("ps -aq --state created"), id);
  EXPECT_EQ(Nodectl("start " + shortened), shortened);
  EXPECT_EQ(Nodectl("pods -q --name web"), pod);
  EXPECT_TRUE(Nodectl("ps").find(shortened + "       ") != std::string::npos);
  EXPECT_NE(Nodectl("images").find("docker.io/library/busybox   test "), std::string::npos)
      << Nodectl("images");
  EXPECT_EQ(
      Nodectl("inspect -o go-template --template '{{.status.metadata.name}} {{.status.state}}' " + shortened),
      "main CONTAINER_RUNNING");
  const std::string inspected = Nodectl("inspect " + shortened);
  boost::system::error_code error;
  const boost::json::value document = boost::json::parse(inspected, error);
  ASSERT_FALSE(error) << inspected;
  EXPECT_GT(document.at("info").at("pid").to_number<int64_t>(), 1);
  EXPECT_NE(Nodectl("inspectp " + pod).find("\"ip\": \"10.213.0."), std::string::npos);
  EXPECT_NE(Nodectl("version").find("RuntimeName:  containerd"), std::string::npos);

  EXPECT_TRUE(Eventually([&] { return Nodectl("logs " + shortened).find("bad") != std::string::npos; }));
  EXPECT_EQ(Nodectl("logs " + shortened + " 2>/dev/null"), "hello world");
  EXPECT_EQ(Nodectl("exec " + shortened + " sh -c 'echo out; echo err >&2' 2>/dev/null"), "out");
  EXPECT_EQ(Nodectl("exec -s " + shortened + " echo sync"), "sync");
  EXPECT_EQ(Shell("printf 'some input' | " + std::string(KEELSON_NODECTL) + " exec -i " + shortened + " cat")
                .output,
            "some input");
  const Outcome failed = Shell(std::string(KEELSON_NODECTL) + " exec " + shortened + " sh -c 'exit 42'");
  EXPECT_EQ(failed.code, 42);
  EXPECT_NE(failed.output.find("command terminated with exit code 42"), std::string::npos) << failed.output;
  EXPECT_NE(Nodectl("stats " + shortened).find("main "), std::string::npos);
  EXPECT_EQ(Nodectl("update --cpu-share 512 " + id), id);

  EXPECT_EQ(Shell(std::string(KEELSON_NODECTL) + " rm " + id).code, 1);
  EXPECT_EQ(Nodectl("stop " + id), id);
  EXPECT_EQ(Nodectl("logs -f " + id + " 2>/dev/null"), "hello world");
  EXPECT_EQ(Nodectl("rm " + id), id);
  EXPECT_FALSE(PathExists(dir_ + "/logs/main.log"));
  EXPECT_EQ(Nodectl("rmp -f " + pod), "Stopped sandbox " + pod + "\nRemoved sandbox " + pod);
  EXPECT_EQ(Nodectl("pods -q"), "");
}

TEST_F(CrictlTest, AttachesOnATerminalAndForwardsPorts) {
  const std::string started = Nodectl("run --no-pull " + dir_ + "/main.json " + dir_ + "/pod.yaml");
  const std::string pod = Nodectl("pods -q");
  EXPECT_EQ(Nodectl("ps -q"), started);
  // A terminal of 33 rows: script(1) makes one, and hands on the exit code.
  const Outcome terminal =
      Shell("script -qec \"stty rows 33 cols 77; " + std::string(KEELSON_NODECTL) + " exec -it " + started +
            " sh -c 'sleep 1; busybox stty size; exit 7'\" /dev/null < /dev/null");
  EXPECT_EQ(terminal.code, 7) << terminal.output;
  EXPECT_NE(terminal.output.find("33 77"), std::string::npos) << terminal.output;

  const auto free = FreePort();
  ASSERT_TRUE(free);
  const std::string port = std::to_string(*free);
  const std::string forward = std::string(KEELSON_NODECTL) + " port-forward " + pod + " " + port +
                              ":8080 > " + dir_ + "/forward.log 2>&1 & echo $!";
  const std::string pid(TrimRight(Shell(forward).output));
  const std::string get = "busybox wget -q -O - http://127.0.0.1:" + port + "/page";
  EXPECT_TRUE(Eventually([&] { return Shell(get).output == "page\n"; })) << *ReadFile(dir_ + "/forward.log");
  EXPECT_EQ(Shell(get).output, "page\n");
  EXPECT_EQ(Shell("kill " + pid).code, 0);
  Nodectl("rmp -fa");
}

// The container's program ends with its input, which the first one to attach ends.
TEST_F(CrictlTest, AttachesWithInput) {
  ASSERT_TRUE(WriteFile(dir_ + "/cat.json",
                        R"({"metadata": {"name": "cat"}, "image": {"image": "docker.io/library/busybox:test"},
      "log_path": "cat.log", "stdin": true, "stdin_once": true, "command": ["sh", "-c", "cat; echo over >&2"], "linux": {}})"));
  const std::string id = Nodectl("run --no-pull " + dir_ + "/cat.json " + dir_ + "/pod.yaml");
  const Outcome attached =
      Shell("printf 'one\\ntwo\\n' | " + std::string(KEELSON_NODECTL) + " attach -i " + id);
  EXPECT_EQ(attached.code, 0) << attached.output;
  EXPECT_NE(attached.output.find("one\ntwo\n"), std::string::npos) << attached.output;
  EXPECT_TRUE(Eventually([&] { return Nodectl("ps -aq --state exited") == id; }));
  EXPECT_NE(Nodectl("logs " + id).find("over"), std::string::npos);
  const Outcome ended = Shell(std::string(KEELSON_NODECTL) + " attach " + id);
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.output.find("attaching running container: "), std::string::npos) << ended.output;
  Nodectl("rmp -fa");
}

// containerd 1.6 has no checkpoints, and no statistics of pods without a cgroup of their own: then nodectl says so.
TEST_F(CrictlTest, ShowsStatisticsAndMakesCheckpoints) {
  const std::string id = Nodectl("run --no-pull " + dir_ + "/main.json " + dir_ + "/pod.yaml");
  const std::string pod = Nodectl("pods -q");
  const Outcome stats = Shell(std::string(KEELSON_NODECTL) + " statsp " + pod);
  if (stats.code == 0) {
    EXPECT_NE(stats.output.find("POD ID"), std::string::npos) << stats.output;
    EXPECT_NE(stats.output.find(pod.substr(0, 13)), std::string::npos) << stats.output;
  } else {
    EXPECT_NE(stats.output.find("get pod stats: rpc error: "), std::string::npos) << stats.output;
  }
  const std::string archive = dir_ + "/checkpoint.tar";
  const Outcome checkpoint = Shell(std::string(KEELSON_NODECTL) + " checkpoint -e " + archive + " " + id);
  EXPECT_EQ(checkpoint.code == 0, PathExists(archive)) << checkpoint.output;
  if (checkpoint.code != 0) {
    EXPECT_NE(checkpoint.output.find("checkpointing the container \"" + id + "\" failed"), std::string::npos)
        << checkpoint.output;
  }
  Nodectl("rmp -fa");
}

// Documents, and the columns of tables but for ages.
TEST_F(CrictlTest, PrintsWhatCrictlPrints) {
  if (Shell("command -v crictl").code != 0) GTEST_SKIP() << "needs crictl to compare with";
  const std::string id = Nodectl("run --no-pull " + dir_ + "/main.json " + dir_ + "/pod.yaml");
  const std::string pod = Nodectl("pods -q");
  for (const std::string& verb :
       {std::string("pods -o json"), std::string("ps -a -o json"), std::string("images -o json"),
        "inspect " + id, "inspectp " + pod, std::string("inspecti busybox:test")}) {
    const std::string crictl = "crictl --config " + dir_ + "/crictl.yaml " + verb;
    EXPECT_EQ(boost::json::parse(Nodectl(verb)), boost::json::parse(Shell(crictl).output)) << verb;
  }
  for (const char* verb :
       {"pods -q", "ps -aq", "images", "images -q", "images --digests --no-trunc", "version"}) {
    EXPECT_EQ(Nodectl(verb), TrimRight(Shell("crictl --config " + dir_ + "/crictl.yaml " + verb).output))
        << verb;
  }
  Nodectl("rmp -fa");
}

}  // namespace
}  // namespace keelson
