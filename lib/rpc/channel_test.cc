#include "lib/rpc/channel.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/rpc/proto/etcd.grpc.pb.h"

namespace keelson::rpc {
namespace {

TEST(ToErrorTest, MapsCodes) {
  struct Case {
    grpc::StatusCode from;
    Code to;
  };
  for (const Case& c :
       {Case{grpc::StatusCode::NOT_FOUND, Code::kNotFound},
        Case{grpc::StatusCode::DEADLINE_EXCEEDED, Code::kTimeout},
        Case{grpc::StatusCode::UNAVAILABLE, Code::kUnavailable},
        Case{grpc::StatusCode::OUT_OF_RANGE, Code::kGone}, Case{grpc::StatusCode::ABORTED, Code::kConflict},
        Case{grpc::StatusCode::UNKNOWN, Code::kInternal}}) {
    Error error = ToError(grpc::Status(c.from, "why"), "do it");
    EXPECT_EQ(error.code(), c.to);
    EXPECT_EQ(error.message(), "do it: why");
  }
}

TEST(GoErrorTest, ReadsAsInGo) {
  Error error = GoError(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "why"));
  EXPECT_EQ(error.code(), Code::kConflict);
  EXPECT_EQ(error.message(), "rpc error: code = FailedPrecondition desc = why");
  EXPECT_EQ(GoError(grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "")).message(),
            "rpc error: code = Unauthenticated desc = ");
}

TEST(CallTest, AbsentServerIsUnavailable) {
  auto kv = etcdserverpb::KV::NewStub(UnixChannel("/nonexistent/keelson.sock"));
  etcdserverpb::RangeRequest request;
  etcdserverpb::RangeResponse reply;
  Call call(std::chrono::seconds(30));
  Result<> done = call.Done(kv->Range(call.context(), request, &reply), "range");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::kUnavailable);
}

// A connection may take as long as a busy machine needs.
TEST(CallTest, APeerThatDoesNotAnswerYetIsNotAbsent) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = ::testing::TempDir() + "/channel_test." + std::to_string(::getpid());
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const UniqueFd silent(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(silent.get(), 1), 0);
  auto kv = etcdserverpb::KV::NewStub(UnixChannel(path));
  etcdserverpb::RangeRequest request;
  etcdserverpb::RangeResponse reply;
  Call call(std::chrono::milliseconds(600));
  Result<> done = call.Done(kv->Range(call.context(), request, &reply), "range");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::kTimeout) << done.error().message();
  EXPECT_TRUE(RemoveFile(path));
}

TEST(CallTest, StopCancels) {
  auto kv = etcdserverpb::KV::NewStub(UnixChannel("/nonexistent/keelson.sock"));
  std::stop_source stop;
  stop.request_stop();
  etcdserverpb::RangeRequest request;
  etcdserverpb::RangeResponse reply;
  Call call(std::chrono::seconds(30), stop.get_token());
  Result<> done = call.Done(kv->Range(call.context(), request, &reply), "range");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::kCancelled);
}

TEST(AwaitConnectedTest, EndsInTimeAndOnStop) {
  auto channel = UnixChannel("/nonexistent/keelson.sock");
  EXPECT_FALSE(AwaitConnected(*channel, std::chrono::milliseconds(1)));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(AwaitConnected(*channel, std::chrono::hours(1), stop.get_token()));
}

TEST(TimeLeftTest, IsBoundedBothWays) {
  using std::chrono::milliseconds;
  EXPECT_EQ(TimeLeft(SteadyTime::max(), milliseconds(7)), milliseconds(7));
  EXPECT_EQ(TimeLeft(SteadyTime::min(), milliseconds(7)), milliseconds(1));
}

}  // namespace
}  // namespace keelson::rpc
