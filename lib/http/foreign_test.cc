// curl, nghttp and h2load against our server.
#include <gtest/gtest.h>

#include "lib/base/file.h"
#include "lib/event/process.h"
#include "lib/http/testing/fixture.h"

namespace keelson::http {
namespace {

class ForeignTest : public ::testing::Test {
 protected:
  ForeignTest()
      : server_(
            [](auto request, auto writer) {
              if (request->path == "/stream") {
                writer->Start(200, {});
                for (int i = 0; i < 3; ++i) writer->Write(std::make_shared<const std::string>("piece "));
                return writer->Finish();
              }
              if (request->path == "/big") return writer->Reply(200, {}, std::string(5 << 20, 'b'));
              std::string who = request->peer ? request->peer->common_name : "nobody";
              writer->Reply(200, {},
                            request->method + " " + who + " " + std::to_string(request->http_major) + " " +
                                std::to_string(request->body.size()));
            },
            TlsOptions(pki_)) {
    auto certificate = pki_.Client("alice", {"dev"});
    EXPECT_TRUE(WriteFile(pki_.dir() + "/c.pem", certificate.certificate_pem));
    EXPECT_TRUE(WriteFile(pki_.dir() + "/c.key", certificate.key_pem));
    EXPECT_TRUE(WriteFile(pki_.dir() + "/body", std::string(2 << 20, 'x')));
  }
  // stdout and stderr; nullopt when the program is not installed.
  std::optional<std::string> Run(std::vector<std::string> argv) {
    event::ProcessOptions options;
    options.argv = std::move(argv);
    options.output_file = pki_.dir() + "/out";
    EXPECT_TRUE(RemoveFile(options.output_file));
    auto process = event::Process::Start(options);
    if (!process) return std::nullopt;
    auto exit = process->Wait({}, std::chrono::seconds(30));
    EXPECT_TRUE(exit);
    return ReadFile(options.output_file).value_or("");
  }
  crypto::TestPki pki_;
  RunningServer server_;
};

#define RUN_OR_SKIP(out, ...)                                  \
  std::optional<std::string> out##_ = Run(__VA_ARGS__);        \
  if (!out##_) GTEST_SKIP() << "the program is not installed"; \
  const std::string& out = *out##_

TEST_F(ForeignTest, Curl) {
  for (const char* version : {"--http1.1", "--http2"}) {
    std::string major = std::string(version) == "--http2" ? "2" : "1";
    std::vector<std::string> base = {"curl", "-sS", version, "--cacert", pki_.ca_file()};
    auto with = [&](std::vector<std::string> more) {
      std::vector<std::string> all = base;
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    std::string url = server_.Url("https");
    RUN_OR_SKIP(plain, with({url + "/"}));
    EXPECT_EQ(plain, "GET nobody " + major + " 0");
    RUN_OR_SKIP(cert, with({"--cert", pki_.dir() + "/c.pem", "--key", pki_.dir() + "/c.key", url + "/"}));
    EXPECT_EQ(cert, "GET alice " + major + " 0");
    RUN_OR_SKIP(upload,
                with({"-H", "Expect: 100-continue", "--data-binary", "@" + pki_.dir() + "/body", url + "/"}));
    EXPECT_EQ(upload, "POST nobody " + major + " 2097152");
    RUN_OR_SKIP(stream, with({url + "/stream"}));
    EXPECT_EQ(stream, "piece piece piece ");
    RUN_OR_SKIP(big, with({"-o", "/dev/null", "-w", "%{size_download} %{http_code}", url + "/big"}));
    EXPECT_EQ(big, "5242880 200");
    RUN_OR_SKIP(head, with({"-I", url + "/big"}));
    EXPECT_NE(head.find("ontent-"), std::string::npos) << head;
    RUN_OR_SKIP(twice, with({url + "/", url + "/stream"}));
    EXPECT_EQ(twice, "GET nobody " + major + " 0piece piece piece ");
  }
}

TEST_F(ForeignTest, Nghttp) {
  RUN_OR_SKIP(out, {"nghttp", "-n", "-s", "-m", "50", server_.Url("https") + "/"});
  EXPECT_NE(out.find("200"), std::string::npos) << out;
}

TEST_F(ForeignTest, H2load) {
  RUN_OR_SKIP(out, {"h2load", "-n", "2000", "-c", "4", "-m", "50", server_.Url("https") + "/"});
  EXPECT_NE(out.find("2000 succeeded, 0 failed"), std::string::npos) << out;
}

}  // namespace
}  // namespace keelson::http
