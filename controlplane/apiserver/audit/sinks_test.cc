// Sinks in isolation: requests to a webhook, retries, and events that do not fit.
#include <gtest/gtest.h>

#include <deque>

#include <boost/json.hpp>

#include "controlplane/apiserver/audit/legacy_line.h"
#include "controlplane/apiserver/audit/sink.h"
#include "lib/base/file.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver::audit {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

EventJson Make(const std::string& text) { return std::make_shared<const std::string>(text); }

// A server with scripted status codes; 0: unreachable. 200 when the script is empty.
class Server : public client::Transport {
 public:
  Result<client::ApiResponse> Do(const client::ApiRequest& request, milliseconds, std::stop_token) override {
    MutexLock lock(mutex_);
    requests_.push_back(request);
    int status = 200;
    if (!answers_.empty()) {
      status = answers_.front();
      answers_.pop_front();
    }
    changed_.notify_all();
    if (status == 0) return Error(Code::kUnavailable, "connection refused");
    client::ApiResponse reply;
    reply.status = status;
    return reply;
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest&, std::stop_token) override {
    return Error(Code::kUnimplemented, "no streams");
  }

  void Answer(std::deque<int> statuses) {
    MutexLock lock(mutex_);
    answers_ = std::move(statuses);
  }
  std::vector<client::ApiRequest> Await(size_t count) {
    MutexLock lock(mutex_);
    while (requests_.size() < count) changed_.wait(mutex_);
    return requests_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<int> answers_ KEELSON_GUARDED_BY(mutex_);
  std::vector<client::ApiRequest> requests_ KEELSON_GUARDED_BY(mutex_);
};

TEST(WebhookSink, TriesAgainWhatMayHelp) {
  struct Case {
    std::deque<int> answers;
    size_t requests;
    bool good;
  };
  const Case cases[] = {
      {{200}, 1, true},
      {{503, 0, 200}, 3, true},
      {{429, 200}, 2, true},
      {{400, 200}, 1, false},  // it will not have it later either
      {{0, 0, 0, 0, 0, 200}, 5, false},
  };
  for (const Case& one : cases) {
    auto server = std::make_shared<Server>();
    server->Answer(one.answers);
    auto sink = NewWebhookSink(server, "/audit", milliseconds(1));
    EXPECT_EQ(static_cast<bool>(sink->Write({Make(R"({"a":1})"), Make(R"({"b":2})")})), one.good);
    std::vector<client::ApiRequest> requests = server->Await(one.requests);
    ASSERT_EQ(requests.size(), one.requests);
    EXPECT_EQ(requests[0].method, "POST");
    EXPECT_EQ(requests[0].target, "/audit");
    EXPECT_EQ(
        requests[0].body,
        R"({"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{"a":1},{"b":2}]})");
  }
}

TEST(WebhookSink, TheEndDoesNotWaitForOneThatIsDown) {
  auto server = std::make_shared<Server>();
  server->Answer(std::deque<int>(100, 0));
  BatchOptions options;
  options.max_size = 1;
  options.qps = 0;
  const SteadyTime begin = SteadyTime::clock::now();
  {
    auto sink = NewBatchSink("webhook", options, NewWebhookSink(server, "/", std::chrono::hours(1)));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(sink->Write({Make(std::to_string(i))})) << "nobody waits for it";
    server->Await(1);  // it backs off, for an hour
  }
  EXPECT_LT(SteadyTime::clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(server->Await(5).size(), 5u) << "each has been tried";
}

class Kept : public Sink {
 public:
  explicit Kept(std::vector<std::vector<EventJson>>& batches) : batches_(batches) {}
  Result<> Write(const std::vector<EventJson>& events) override {
    batches_.push_back(events);
    return {};
  }

 private:
  std::vector<std::vector<EventJson>>& batches_;
};

TEST(TruncateSink, TakesObjectsOutAndCutsBatchesUp) {
  std::vector<std::vector<EventJson>> batches;
  auto sink = NewTruncateSink("webhook", {200, 300}, std::make_unique<Kept>(batches));
  const std::string padding(150, 'x'), much(300, 'x');
  const EventJson small = Make(R"({"auditID":"1","x":")" + padding + "\"}"),
                  large = Make(R"({"auditID":"2","requestObject":{"x":")" + much +
                               R"("},"responseObject":{"y":1},"annotations":{"a":"b"}})"),
                  hopeless = Make(R"({"auditID":"3","userAgent":")" + much + "\"}");
  ASSERT_TRUE(sink->Write({small, large, hopeless, small}));
  ASSERT_EQ(batches.size(), 2u);
  ASSERT_EQ(batches[0].size(), 2u);
  EXPECT_EQ(batches[0][0], small) << "untouched";
  EXPECT_EQ(json::parse(*batches[0][1]),
            json::parse(R"({"auditID":"2","annotations":{"a":"b","audit.k8s.io/truncated":"true"}})"));
  EXPECT_EQ(batches[1], std::vector<EventJson>{small});
}

TEST(LegacyLine, HasUpstreamsForm) {
  EXPECT_EQ(LegacyLine(R"({"auditID":"id","stage":"ResponseComplete","requestURI":"/api/v1/pods?a=\"b\"",
      "verb":"list","user":{"username":"jane","groups":["dev","ops"]},"sourceIPs":["10.0.0.1","10.0.0.2"],
      "impersonatedUser":{"username":"joe","groups":["x"]},"objectRef":{"resource":"pods","namespace":"a"},
      "responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-31T23:59:59.123456Z"})"),
            R"(2026-01-31T23:59:59.123456Z AUDIT: id="id" stage="ResponseComplete" ip="10.0.0.1" )"
            R"(method="list" user="jane" groups="\"dev\",\"ops\"" as="joe" asgroups="\"x\"" namespace="a" )"
            R"(uri="/api/v1/pods?a=\"b\"" response="200")");
  EXPECT_EQ(
      LegacyLine(R"({"auditID":"id","stage":"RequestReceived","requestURI":"/","verb":"get","user":{},
      "requestReceivedTimestamp":"2026-01-31T23:59:59.123456Z"})"),
      R"(2026-01-31T23:59:59.123456Z AUDIT: id="id" stage="RequestReceived" ip="<unknown>" method="get" )"
      R"(user="<none>" groups="<none>" as="<self>" asgroups="<lookup>" namespace="<none>" uri="/" )"
      R"(response="<deferred>")");
}

}  // namespace
}  // namespace keelson::apiserver::audit
