// crictl's verbs, from the command line to a CRI server and back.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

#include "ctl/cri/testing/fake_cri.h"
#include "ctl/cri/verbs/port_pair.h"
#include "ctl/cri_verbs.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/component/flags.h"
#include "lib/rpc/server.h"

namespace keelson::ctl {
namespace {

const std::string kImage = "sha256:" + std::string(64, 'b');

class CriVerbsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ctl_verbs.XXXXXX";
    dir_ = ::mkdtemp(name);
    for (const char* variable : {"CRI_CONFIG_FILE", "CONTAINER_RUNTIME_ENDPOINT", "IMAGE_SERVICE_ENDPOINT"}) {
      ::unsetenv(variable);
    }
    AddPod("pod1aaaaaaaaaaaaaaaa", "web", cri::SANDBOX_READY);
    AddPod("pod2aaaaaaaaaaaaaaaa", "db", cri::SANDBOX_NOTREADY);
    AddContainer("c1", "main", cri::CONTAINER_RUNNING);
    AddContainer("c2", "init", cri::CONTAINER_EXITED);
    AddImage(kImage, "docker.io/library/busybox:test", false);
    AddImage("sha256:unused", "docker.io/library/unused:1", false);
    AddImage("sha256:pinned", "pause:3", true);
    fake_.log_path = dir_ + "/0.log";
    auto server =
        rpc::UnixServer::Start(dir_ + "/cri.sock", {static_cast<cri::RuntimeService::Service*>(&fake_),
                                                    static_cast<cri::ImageService::Service*>(&fake_)});
    ASSERT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
  }
  void TearDown() override {
    server_.reset();
    EXPECT_TRUE(RemoveTree(dir_));
  }

  void AddPod(const std::string& id, const std::string& name, cri::PodSandboxState state) {
    cri::PodSandbox& pod = fake_.pods.emplace_back();
    pod.set_id(id);
    pod.set_state(state);
    pod.set_created_at(static_cast<int64_t>(fake_.pods.size()));
    pod.mutable_metadata()->set_name(name);
    pod.mutable_metadata()->set_namespace_("default");
  }
  void AddContainer(const std::string& id, const std::string& name, cri::ContainerState state) {
    cri::Container& one = fake_.containers.emplace_back();
    one.set_id(id);
    one.set_pod_sandbox_id("pod1aaaaaaaaaaaaaaaa");
    one.set_state(state);
    one.set_created_at(static_cast<int64_t>(fake_.containers.size()));
    one.mutable_metadata()->set_name(name);
    one.mutable_image()->set_image(kImage);
    (*one.mutable_labels())["io.kubernetes.pod.name"] = "web";
  }
  void AddImage(const std::string& id, const std::string& tag, bool pinned) {
    cri::Image& image = fake_.images.emplace_back();
    image.set_id(id);
    image.add_repo_tags(tag);
    image.set_size(1146369);
    image.set_pinned(pinned);
  }

  // What `nodectl WORDS` prints, and "exit N" or "error: ..." when it does not succeed.
  std::string Run(const std::string& words) {
    std::vector<std::string> arguments = {"-r", "unix://" + dir_ + "/cri.sock", "--timeout", "20s"};
    for (const std::string_view word : SplitWords(words)) arguments.emplace_back(word);
    CLI::App app{"nodectl"};
    Settings settings;
    app.add_option("-o,--output", settings.output, "");
    keelson::ctl::Run chosen;
    const auto check = AddCriVerbs(app, chosen);
    app.add_subcommand("token", "")->callback([&chosen] {
      chosen = [](const Settings&) -> Result<int> { return 0; };
    });
    std::ostringstream out, err;
    std::streambuf* old = std::cout.rdbuf(out.rdbuf());
    std::streambuf* old_err = std::cerr.rdbuf(err.rdbuf());
    const std::optional<int> done = ParseFlags(app, arguments, out, err);
    Result<int> code = done ? Result<int>(*done) : check() ? chosen(settings) : Result<int>(check().error());
    std::cout.rdbuf(old);
    std::cerr.rdbuf(old_err);
    return out.str() + (done && *done != 0 ? err.str() : "") +
           (!code   ? "error: " + code.error().message()
            : *code ? "exit " + std::to_string(*code)
                    : "");
  }
  // The cells of a table, one line a row.
  std::string Cells(const std::string& words) {
    const std::string text = Run(words);
    std::string out;
    for (const std::string_view line : Split(text, '\n')) {
      std::string row;
      for (size_t at = 0; at < line.size();) {
        const size_t end = std::min(line.find("   ", at), line.size());
        row += (row.empty() ? "" : "|") + std::string(line.substr(at, end - at));
        at = std::min(line.find_first_not_of(' ', end), line.size());
      }
      if (!row.empty()) out += row + "\n";
    }
    return out;
  }

  std::string dir_;
  FakeCri fake_;
  std::unique_ptr<rpc::UnixServer> server_;
};

TEST_F(CriVerbsTest, PodsListsAndFilters) {
  const std::string heading = "POD ID|CREATED|STATE|NAME|NAMESPACE|ATTEMPT|RUNTIME\n";
  const std::string web = "|Ready|web|default|0|(default)\n", db = "|NotReady|db|default|0|(default)\n";
  const std::string all = Cells("pods");
  EXPECT_TRUE(all.starts_with(heading + "pod2aaaaaaaaa|")) << all;  // the newest first
  EXPECT_NE(all.find(db + "pod1aaaaaaaaa|"), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with(web)) << all;
  EXPECT_EQ(Run("pods -q --state ready"), "pod1aaaaaaaaaaaaaaaa\n");
  EXPECT_EQ(Run("pods -q --name ^d"), "pod2aaaaaaaaaaaaaaaa\n");
  EXPECT_EQ(Run("pods -ql"), "pod2aaaaaaaaaaaaaaaa\n");
  EXPECT_EQ(Run("pods -q --id pod1"), "pod1aaaaaaaaaaaaaaaa\n");
  EXPECT_NE(Run("pods --no-trunc").find("pod1aaaaaaaaaaaaaaaa "), std::string::npos);
  EXPECT_EQ(Run("pods --state gone"), "error: listing pod sandboxes: --state should be ready or notready");
  EXPECT_EQ(Run("pods --label x"), "error: listing pod sandboxes: incorrectly specified label: x");
  EXPECT_EQ(Run("pods -o go-template"), "error: unsupported output format \"go-template\"");
  EXPECT_TRUE(Run("-o json pods --name web").starts_with("{\n  \"items\": [\n    {\n      \"id\": \"pod1"));
  EXPECT_TRUE(Run("pods -o yaml").starts_with("items:\n  - annotations:")) << Run("pods -o yaml");
}

TEST_F(CriVerbsTest, PsShowsRunningOnesUnlessToldOtherwise) {
  EXPECT_EQ(Run("ps -q"), "c1\n");
  EXPECT_EQ(Run("ps -aq"), "c2\nc1\n");
  EXPECT_EQ(Run("ps -q -n 1"), "c2\n");
  EXPECT_EQ(Run("ps -q -s exited"), "c2\n");
  EXPECT_EQ(Run("ps -q --image docker.io/library/busybox:test"), "c1\n");
  EXPECT_EQ(Run("ps -q --image pause:3"), "");
  const std::string table = Cells("ps");
  EXPECT_TRUE(
      table.starts_with("CONTAINER|IMAGE|CREATED|STATE|NAME|ATTEMPT|POD ID|POD|NAMESPACE\nc1|bbbbbbbbbbbbb|"))
      << table;
  EXPECT_TRUE(table.ends_with("|Running|main|0|pod1aaaaaaaaa|web|unknown\n")) << table;
  EXPECT_NE(Cells("ps -r").find("c1|docker.io/library/busybox:test|"), std::string::npos);
  EXPECT_NE(Run("ps -v").find("ID: c1\nPodID: pod1aaaaaaaaaaaaaaaa\nNamespace: unknown\nName: main\n"),
            std::string::npos);
}

TEST_F(CriVerbsTest, ImagesListsFiltersAndRemoves) {
  EXPECT_EQ(Cells("images --pinned"),
            "IMAGE|TAG|IMAGE ID|SIZE|PINNED\n"
            "docker.io/library/busybox|test|bbbbbbbbbbbbb|1.15MB|false\n"
            "docker.io/library/unused|1|unused|1.15MB|false\n"
            "pause|3|pinned|1.15MB|true\n");
  EXPECT_EQ(Run("img -q -f since=pause:3 -f before=docker.io/library/busybox:test"), "sha256:unused\n");
  EXPECT_EQ(Run("images -q -f dangling=true"), "");
  EXPECT_EQ(Run("images -f size=1"), "error: listing images: unknown filter flag: size=1");
  EXPECT_EQ(Run("rmi --prune"), "Deleted: docker.io/library/unused:1\n");
  EXPECT_EQ(Run("rmi nothing"), "error: no such image \"nothing\" present");
  EXPECT_EQ(Run("pull --creds user:secret busybox"), "Image is up to date for busybox@sha256:1\n");
  EXPECT_EQ(fake_.Calls(), (std::vector<std::string>{"RemoveImage sha256:unused", "PullImage busybox user"}));
}

TEST_F(CriVerbsTest, InspectTakesBeginningsOfIds) {
  EXPECT_EQ(Run("inspectp pod1 -o go-template --template {{.status.metadata.name}}:{{.info.pid}}"),
            "web:7\n");
  EXPECT_EQ(Run("inspectp -q pod1 -o go-template --template {{.info}}"), "<no value>\n");
  EXPECT_EQ(Run("inspect c2").find("\"startedAt\": \"0001-"), std::string::npos) << Run("inspect c2");
  EXPECT_NE(Run("inspect c1").find("\"finishedAt\": \"0001-01-01T00:00:00Z\""), std::string::npos);
  EXPECT_TRUE(
      Run("inspect --name main -o table").starts_with("ID: c1\nName: main\nState: CONTAINER_RUNNING\n"));
  EXPECT_NE(Run("inspecti pause:3").find("\"pinned\": true"), std::string::npos);
  EXPECT_EQ(Run("inspect nothing"),
            "error: get the status of containers: rpc error: code = NotFound desc = container not found");
  EXPECT_EQ(Run("inspect --name nothing"), "error: No IDs provided or nothing found per filter");
}

TEST_F(CriVerbsTest, StopAndRemoveSayWhatTheyHaveDone) {
  EXPECT_EQ(Run("stop -t 5 c1"), "c1\n");
  EXPECT_EQ(Run("stop --all"), "c1\n");
  EXPECT_EQ(Run("rm c1"), "error: container \"c1\" is running, please stop it first");
  ASSERT_TRUE(WriteFile(fake_.log_path, ""));
  ASSERT_TRUE(WriteFile(fake_.log_path + ".2026", ""));
  EXPECT_EQ(Run("rm -k c2"), "c2\n");
  EXPECT_TRUE(PathExists(fake_.log_path));
  EXPECT_EQ(Run("rm -f c1"), "c1\nc1\n");
  EXPECT_FALSE(PathExists(fake_.log_path) || PathExists(fake_.log_path + ".2026"));
  EXPECT_EQ(Run("stopp pod1"), "Stopped sandbox pod1\n");
  EXPECT_EQ(Run("rmp -fa"),
            "Removed sandbox pod2aaaaaaaaaaaaaaaa\n"
            "Stopped sandbox pod1aaaaaaaaaaaaaaaa\nRemoved sandbox pod1aaaaaaaaaaaaaaaa\n");
  EXPECT_EQ(Run("start c2"), "c2\n");
  EXPECT_EQ(Run("update --cpu-share 512 --memory 1024 c1"), "c1\n");
  const auto calls = fake_.Calls();
  EXPECT_EQ(calls.front(), "StopContainer c1 5");
  EXPECT_EQ(calls.back(), "Update c1 cpu_shares: 512 memory_limit_in_bytes: 1024");
  EXPECT_EQ(Run("rm"), "error: you must specify at least one CONTAINER-ID or use --all");
}

TEST_F(CriVerbsTest, ExecKeepsTheCommandsOwnFlags) {
  EXPECT_EQ(Run("exec -s c1 ls -t --all_files -- x"), "c1 [ls][-t][--all_files][--][x]\nexit 3");
  EXPECT_EQ(Run("exec -s --name main ls"), "c1 [ls]\nexit 3");
  EXPECT_EQ(Run("exec -s -e c1 ls"), "c1 [ls]\n");
  EXPECT_EQ(Run("exec c1"), "error: want CONTAINER-ID COMMAND [ARG...]");
  EXPECT_EQ(Run("exec -t c1 sh"), "error: a terminal needs input: use -i with -t");
  EXPECT_EQ(Run("exec -r websocket c1 sh"), "error: transport \"websocket\": nodectl has spdy alone");
}

TEST_F(CriVerbsTest, InfoStatsLogsAndEvents) {
  EXPECT_EQ(Run("version"),
            "Version:  0.1.0\nRuntimeName:  fake\nRuntimeVersion:  1.2.3\nRuntimeApiVersion:  v1\n");
  EXPECT_EQ(Run("info -o go-template --template {{.config.root}}"), "/r\n");
  EXPECT_NE(Run("info -q").find("\"user_namespaces\": true"), std::string::npos) << Run("info -q");
  EXPECT_EQ(Cells("stats c1"),
            "CONTAINER|NAME|CPU %|MEM|DISK|INODES\nc1|main|25.00|1.5MB|0B|0\nc2|init|25.00|1.5MB|0B|0\n");
  ASSERT_TRUE(
      WriteFile(fake_.log_path, "2026-01-01T00:00:01Z stdout F one\n2026-01-01T00:00:02Z stdout F two\n"));
  EXPECT_EQ(Run("logs --tail 1 -t c1"), "2026-01-01T00:00:02.000000000Z two\n");
  EXPECT_EQ(Run("logs -f c2"), "one\ntwo\n");  // it has ended
  EXPECT_EQ(Run("events -o go-template --template {{.containerId}}={{.containerEventType}}"),
            "c1=CONTAINER_STARTED_EVENT\n");
}

TEST_F(CriVerbsTest, StatspShowsPodsThatUseSomething) {
  EXPECT_EQ(Cells("statsp"), "POD|POD ID|CPU %|MEM\nweb|pod1aaaaaaaaa|50.00|2.5MB\n");
  EXPECT_EQ(Cells("statsp pod2"), "POD|POD ID|CPU %|MEM\n");
  const std::string document = Run("statsp -o json pod1");
  EXPECT_NE(document.find("\"id\": \"pod1aaaaaaaaaaaaaaaa\""), std::string::npos) << document;
  EXPECT_EQ(document.find("pod2"), std::string::npos) << document;
}

TEST_F(CriVerbsTest, CheckpointNamesTheArchive) {
  EXPECT_EQ(Run("checkpoint -e /tmp/a.tar c1"), "c1\n");
  EXPECT_EQ(fake_.Calls(), std::vector<std::string>{"CheckpointContainer c1 /tmp/a.tar"});
  EXPECT_NE(Run("checkpoint c1").find("--export is required"), std::string::npos) << Run("checkpoint c1");
  EXPECT_NE(Run("checkpoint -e /tmp/a.tar c2 c1").find("error: "), std::string::npos);
  EXPECT_EQ(fake_.Calls().back(),
            "CheckpointContainer c1 /tmp/a.tar");  // it goes on after the first one's error
}

TEST_F(CriVerbsTest, AttachAsksForTheStreamsThatItServes) {
  EXPECT_EQ(Run("attach -t c1"), "error: a terminal needs input: use -i with -t");
  EXPECT_EQ(Run("attach -r websocket c1"), "error: transport \"websocket\": nodectl has spdy alone");
  EXPECT_TRUE(fake_.Calls().empty());
  EXPECT_TRUE(Run("attach c1").starts_with("error: attaching running container: ")) << Run("attach c1");
  EXPECT_TRUE(Run("attach -i c1").starts_with("error: attaching running container: "));
  EXPECT_EQ(fake_.Calls().front(), "Attach container_id: \"c1\" stdout: true stderr: true");
  EXPECT_EQ(fake_.Calls().back(), "Attach container_id: \"c1\" stdin: true stdout: true stderr: true");
}

TEST_F(CriVerbsTest, RefusesFlagsOfTheRuntimeElsewhere) {
  EXPECT_EQ(Run("token"), "error: flags of the container runtime have no effect on the verb token");
  server_.reset();
  EXPECT_TRUE(Run("--timeout 1s pods").starts_with("error: no container runtime answers at unix://" + dir_));
}

TEST(PortPairTest, LocalAndRemote) {
  EXPECT_EQ(ParsePortPair("80")->local, 80);
  EXPECT_EQ(ParsePortPair("8080:80")->local, 8080);
  EXPECT_EQ(ParsePortPair("8080:80")->remote, 80);
  EXPECT_EQ(ParsePortPair(":80")->local, 0);
  for (const char* bad : {"", "x", "80:", "0", "70000", "1:2:3"}) EXPECT_FALSE(ParsePortPair(bad)) << bad;
}

}  // namespace
}  // namespace keelson::ctl
