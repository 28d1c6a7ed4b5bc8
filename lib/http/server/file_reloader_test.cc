#include "lib/http/server/file_reloader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "lib/base/file.h"
#include "lib/crypto/server_identity.h"
#include "lib/metrics/metrics.h"

namespace keelson::http {
namespace {

class FileReloaderTest : public testing::Test {
 protected:
  FileReloaderTest() {
    char name[] = "/tmp/file-reloader-XXXXXX";
    dir_ = ::mkdtemp(name);
    Write("a", "1");
    Write("b", "2");
  }
  ~FileReloaderTest() override { std::filesystem::remove_all(dir_); }

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(Path(name), text));
  }
  static bool Metric(const std::string& line) {
    return ("\n" + metrics::Print()).find("\n" + line + "\n") != std::string::npos;
  }

  std::string dir_;
  FakeClock clock_;
  FileReloader files_{clock_};
  int reloads_ = 0;
  Result<> answer_;
};

TEST_F(FileReloaderTest, LooksAtWhatHasChanged) {
  files_.Add({"pair", {Path("a"), "", Path("b")}, [this] {
                ++reloads_;
                return answer_;
              }});
  files_.Check();
  EXPECT_EQ(reloads_, 0) << "they have just been read";
  Write("a", "1");
  files_.Check();
  EXPECT_EQ(reloads_, 0) << "the same again";
  Write("b", "3");
  files_.Check();
  files_.Check();
  EXPECT_EQ(reloads_, 1);
  EXPECT_TRUE(Metric("keelson_file_reloads_total{flag=\"pair\",status=\"success\"} 1"));
  // Moving the same text to the other file is a change.
  Write("a", "3");
  Write("b", "1");
  files_.Check();
  EXPECT_EQ(reloads_, 2);
}

TEST_F(FileReloaderTest, TellsOnceOfWhatMakesNoSense) {
  files_.Add({"config",
              {Path("a")},
              [this] {
                ++reloads_;
                return answer_;
              },
              "test_config_controller"});
  auto failures = [](int count) {
    return Metric("apiserver_test_config_controller_automatic_reloads_total{apiserver_id_hash=\"" +
                  crypto::ApiServerIdHash() + "\",status=\"failure\"} " + std::to_string(count));
  };
  answer_ = Error(Code::kInvalid, "no");
  Write("a", "junk");
  files_.Check();
  files_.Check();
  EXPECT_EQ(reloads_, 1);
  EXPECT_TRUE(failures(1));
  // An unreadable file is not reloaded; if it comes back unchanged, nothing is new.
  std::filesystem::remove(Path("a"));
  files_.Check();
  files_.Check();
  EXPECT_TRUE(failures(2));
  Write("a", "junk");
  files_.Check();
  EXPECT_EQ(reloads_, 1);
  answer_ = {};
  Write("a", "good");
  files_.Check();
  EXPECT_EQ(reloads_, 2);
  EXPECT_TRUE(Metric("apiserver_test_config_controller_automatic_reloads_total{apiserver_id_hash=\"" +
                     crypto::ApiServerIdHash() + "\",status=\"success\"} 1"));
  EXPECT_TRUE(Metric("apiserver_test_config_controller_last_config_info{apiserver_id_hash=\"" +
                     crypto::ApiServerIdHash() +
                     "\",hash=\"sha256:"
                     "770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c\"} 1"));
}

TEST_F(FileReloaderTest, FilesWithoutNamesAreNotWatched) {
  files_.Add({"none", {""}, [this] {
                ++reloads_;
                return answer_;
              }});
  files_.Check();
  EXPECT_EQ(reloads_, 0);
}

class FileReloaderRunTest : public FileReloaderTest {
 protected:
  void Watch(const std::string& name) {
    files_.Add({name, {Path(name)}, [this]() -> Result<> {
                  MutexLock lock(mutex_);
                  ++reloads_;
                  changed_.notify_all();
                  return {};
                }});
    runner_ = std::jthread([this](std::stop_token stop) { files_.Run(std::move(stop)); });
  }
  void AwaitReloads(int count) {
    MutexLock lock(mutex_);
    while (reloads_ < count) changed_.wait(mutex_);
  }
  Mutex mutex_;
  CondVar changed_;
  std::jthread runner_;
};

TEST_F(FileReloaderRunTest, TheKernelTellsOfChanges) {
  Watch("a");
  Write("a", "new");
  AwaitReloads(1);
  ASSERT_TRUE(WriteFile(Path("a"), "in place"));
  AwaitReloads(2);
}

// Like a mounted Secret: the files are links through one link that is replaced.
TEST_F(FileReloaderRunTest, LinksAreFollowed) {
  auto publish = [this](const std::string& version, const std::string& text) {
    ASSERT_TRUE(MakeDirs(Path(version)));
    Write(version + "/tls.crt", text);
    std::filesystem::create_directory_symlink(version, Path("..next"));
    std::filesystem::rename(Path("..next"), Path("..data"));
  };
  publish("..1", "one");
  std::filesystem::create_symlink("..data/tls.crt", Path("tls.crt"));
  Watch("tls.crt");
  publish("..2", "two");
  AwaitReloads(1);
  Write("..2/tls.crt", "three");
  AwaitReloads(2);
}

}  // namespace
}  // namespace keelson::http
