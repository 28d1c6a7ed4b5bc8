#include "controlplane/apiserver/audit/auditor.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/json.hpp>

#include "lib/api/codec/codec.h"
#include "lib/base/file.h"
#include "lib/http/gzip.h"

namespace keelson::apiserver::audit {
namespace {

namespace json = boost::json;

class Memory : public Sink {
 public:
  struct Heard {
    Mutex mutex;
    CondVar changed;
    std::vector<size_t> batches KEELSON_GUARDED_BY(mutex);
    std::vector<json::value> events KEELSON_GUARDED_BY(mutex);
    bool broken KEELSON_GUARDED_BY(mutex) = false;
  };
  explicit Memory(std::shared_ptr<Heard> heard) : heard_(std::move(heard)) {}
  Result<> Write(const std::vector<EventJson>& events) override {
    MutexLock lock(heard_->mutex);
    if (heard_->broken) return Error(Code::kUnavailable, "the disk is full");
    heard_->batches.push_back(events.size());
    for (const EventJson& event : events) heard_->events.push_back(json::parse(*event));
    heard_->changed.notify_all();
    return {};
  }

 private:
  std::shared_ptr<Heard> heard_;
};

class AuditorTest : public testing::Test {
 protected:
  Auditor Make(const std::string& rule, bool strict = false) {
    auto policy = Policy::Parse("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- " + rule);
    EXPECT_TRUE(policy) << policy.error().message();
    std::vector<Auditor::Backend> backends;
    backends.push_back({"memory", std::make_unique<Memory>(heard_), strict});
    return Auditor(*policy, std::move(backends), clock_);
  }
  std::shared_ptr<http::ServerRequest> Post(const std::string& body, const std::string& type) {
    auto request = std::make_shared<http::ServerRequest>();
    request->method = "POST";
    request->path = request->raw_path = "/api/v1/namespaces/a/secrets";
    request->raw_query = "dryRun=All";
    request->headers = {
        {"Content-Type", type}, {"User-Agent", "kubectl/v1"}, {"X-Forwarded-For", "10.1.1.1"}};
    request->remote_address = "[::1]:4711";
    request->body = body;
    return request;
  }
  RequestInfo Info() { return ParseRequestInfo("POST", "/api/v1/namespaces/a/secrets", {}); }
  std::vector<json::value> Events() {
    MutexLock lock(heard_->mutex);
    return heard_->events;
  }

  FakeClock clock_;
  std::shared_ptr<Memory::Heard> heard_ = std::make_shared<Memory::Heard>();
  const User jane_{"jane", "u1", {"dev"}, {{"scopes", {"x", "y"}}}}, joe_{"joe", "", {}, {}};
  const std::string body_ =
      R"({"kind":"Secret","apiVersion":"v1", "metadata":{"name":"s","managedFields":[{"manager":"m"}]},)"
      R"("data":{"password":"aHVudGVy"}})";
};

TEST_F(AuditorTest, MetadataHoldsNoBodies) {
  Auditor auditor = Make("level: Metadata");
  auto record = auditor.Begin({&jane_, &joe_, "impersonate:user-info", Info()}, "id-1",
                              Post(body_, "application/json"));
  ASSERT_TRUE(record && *record);
  (*record)->Annotate("authorization.k8s.io/decision", "allow");
  (*record)->SetResponse("application/json", {std::make_shared<const std::string>(body_)});
  ASSERT_TRUE((*record)->Emit(Stage::kResponseComplete, 201));
  ASSERT_TRUE((*record)->Emit(Stage::kResponseComplete, 201));
  std::vector<json::value> events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("stage"), "RequestReceived");
  EXPECT_FALSE(events[0].as_object().contains("responseStatus"));
  const json::object& event = events[1].as_object();
  EXPECT_EQ(json::serialize(event).find("aHVudGVy"), std::string::npos);
  const json::value expected =
      json::parse(R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata",
    "auditID":"id-1","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/a/secrets?dryRun=All",
    "verb":"create","user":{"username":"jane","uid":"u1","groups":["dev"],"extra":{"scopes":["x","y"]}},
    "impersonatedUser":{"username":"joe"},
    "authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},"sourceIPs":["10.1.1.1","::1"],"userAgent":"kubectl/v1",
    "objectRef":{"resource":"secrets","namespace":"a","name":"s","apiVersion":"v1"},
    "responseStatus":{"metadata":{},"code":201},
    "annotations":{"authorization.k8s.io/decision":"allow"}})");
  for (const auto& field : expected.as_object()) {
    EXPECT_EQ(event.at(field.key()), field.value()) << field.key();
  }
  EXPECT_EQ(event.size(), expected.as_object().size() + 2);  // and two times
}

TEST_F(AuditorTest, BodiesInEveryForm) {
  corev1::Secret secret;
  secret.mutable_metadata()->set_name("s");
  (*secret.mutable_data())["password"] = "hunter";
  secret.mutable_metadata()->add_managed_fields()->set_manager("m");
  const std::pair<std::string, std::string> forms[] = {
      {"application/json", body_},
      {"application/yaml",
       "kind: Secret\napiVersion: v1\nmetadata: {name: s, managedFields: [{manager: m}]}\ndata: {password: "
       "aHVudGVy}"},
      {"application/vnd.kubernetes.protobuf", api::EncodeProtobuf(secret, {"", "v1", "Secret"})}};
  for (const auto& [type, body] : forms) {
    SCOPED_TRACE(type);
    Auditor auditor = Make("level: RequestResponse\n  omitManagedFields: true");
    auto record = auditor.Begin({&jane_, nullptr, "", Info()}, "id", Post(body, type));
    (*record)->SetResponse(type, {std::make_shared<const std::string>(body)});
    ASSERT_TRUE((*record)->Emit(Stage::kResponseComplete, 201));
    json::value event = Events().back();
    for (const char* object : {"requestObject", "responseObject"}) {
      EXPECT_EQ(event.at(object).at("data").at("password"), "aHVudGVy");
      EXPECT_FALSE(event.at(object).at("metadata").as_object().contains("managedFields"));
    }
  }
  Auditor request_only = Make("level: Request");
  auto record = request_only.Begin({&jane_, nullptr, "", Info()}, "id", Post(body_, "application/json"));
  (*record)->SetResponse("application/json", {std::make_shared<const std::string>(body_)});
  ASSERT_TRUE((*record)->Emit(Stage::kResponseComplete, 201));
  EXPECT_TRUE(Events().back().at("requestObject").at("metadata").as_object().contains("managedFields"));
  EXPECT_FALSE(Events().back().as_object().contains("responseObject"));
}

TEST_F(AuditorTest, StrictBackendsRefuse) {
  {
    MutexLock lock(heard_->mutex);
    heard_->broken = true;
  }
  Auditor lenient = Make("level: Metadata"), strict = Make("level: Metadata", true);
  EXPECT_TRUE(lenient.Begin({&jane_, nullptr, "", Info()}, "id", Post(body_, "application/json")));
  auto refused = strict.Begin({&jane_, nullptr, "", Info()}, "id", Post(body_, "application/json"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInternal);
}

// A connection that can become a stream.
class Upgradable : public http::ResponseWriter {
 public:
  class Bytes : public http::Stream {
    void AsyncRead(std::function<void(Result<std::string>)>) override {}
    void AsyncWrite(std::string, std::function<void(Result<>)>) override {}
    void ShutdownWrite() override {}
    void Close() override {}
  };
  void Reply(int, http::Headers, std::string) override {}
  void ReplyShared(int, http::Headers, std::vector<std::shared_ptr<const std::string>>) override {}
  void Start(int, http::Headers) override {}
  bool Write(std::shared_ptr<const std::string>) override { return true; }
  void Finish() override {}
  size_t queued_bytes() const override { return 0; }
  void OnClose(std::function<void()>) override {}
  bool closed() const override { return false; }
  Result<std::unique_ptr<http::Stream>> Upgrade(http::Headers) override {
    return std::unique_ptr<http::Stream>(std::make_unique<Bytes>());
  }
};

TEST_F(AuditorTest, StreamsAreOverWhenTheyEnd) {
  Auditor auditor = Make("level: Metadata");
  const RequestInfo info = ParseRequestInfo("POST", "/api/v1/namespaces/a/pods/b/exec", {});
  auto record = auditor.Begin({&jane_, nullptr, "", info}, "id", Post("", ""));
  ASSERT_TRUE(record && *record);
  auto writer = Auditor::Follow(std::make_shared<Upgradable>(), std::move(*record));
  auto stream = writer->Upgrade({});
  ASSERT_TRUE(stream);
  writer.reset();  // nothing is left of the request but its stream
  ASSERT_EQ(Events().size(), 2u);
  EXPECT_EQ(Events()[1].at("stage"), "ResponseStarted");
  EXPECT_EQ(Events()[1].at("responseStatus").at("code"), 101);
  stream->reset();
  ASSERT_EQ(Events().size(), 3u);
  EXPECT_EQ(Events()[2].at("stage"), "ResponseComplete");
  EXPECT_EQ(Events()[2].at("responseStatus").at("code"), 101);
}

EventJson Number(int i) { return std::make_shared<const std::string>(std::to_string(i)); }

TEST_F(AuditorTest, BatchesBySizeAndByTime) {
  BatchOptions options;
  options.max_size = 3;
  options.qps = 0;
  auto sink = NewBatchSink("test", options, std::make_unique<Memory>(heard_), clock_);
  auto await = [&](size_t batches) {
    MutexLock lock(heard_->mutex);
    while (heard_->batches.size() < batches) heard_->changed.wait(heard_->mutex);
    return heard_->batches;
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(sink->Write({Number(i)}));
  EXPECT_EQ(await(1), (std::vector<size_t>{3}));
  ASSERT_TRUE(sink->Write({Number(3)}));
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::seconds(31));
  EXPECT_EQ(await(2), (std::vector<size_t>{3, 1}));
  ASSERT_TRUE(sink->Write({Number(4)}));
  sink.reset();  // flushes the buffer
  EXPECT_EQ(await(3), (std::vector<size_t>{3, 1, 1}));
}

TEST_F(AuditorTest, LogsRotate) {
  char made[] = "/tmp/keelson-audit-XXXXXX";
  const std::string dir = mkdtemp(made), line(100, 'x');
  {
    auto sink = NewLogSink({dir + "/audit.log", 250, 2, {}, true}, clock_);
    ASSERT_TRUE(sink);
    for (int i = 0; i < 9; ++i) {
      ASSERT_TRUE((*sink)->Write({std::make_shared<const std::string>(line)}));
      clock_.Advance(std::chrono::seconds(1));
    }
  }
  auto names = ListDir(dir);
  ASSERT_TRUE(names);
  // The one that is written to, and the newest two that are full.
  ASSERT_EQ(names->size(), 3u) << testing::PrintToString(*names);
  for (const std::string& name : *names) {
    if (name == "audit.log") continue;
    ASSERT_EQ(name.substr(name.size() - 7), ".log.gz");
    EXPECT_EQ(http::Gunzip(*ReadFile(dir + "/" + name)), line + "\n" + line + "\n");
  }
  EXPECT_EQ(*ReadFile(dir + "/audit.log"), line + "\n");
  ASSERT_TRUE(RemoveTree(dir));
}

}  // namespace
}  // namespace keelson::apiserver::audit
