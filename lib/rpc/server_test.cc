#include "lib/rpc/server.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/rpc/channel.h"
#include "lib/rpc/proto/etcd.grpc.pb.h"

namespace keelson::rpc {
namespace {

class Counting : public etcdserverpb::KV::Service {
 public:
  grpc::Status Range(grpc::ServerContext*, const etcdserverpb::RangeRequest*,
                     etcdserverpb::RangeResponse* reply) override {
    reply->set_count(7);
    return grpc::Status::OK;
  }
};

class UnixServerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-rpc-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    dir_ = name;
    path_ = dir_ + "/server.sock";
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_)); }

  Result<int64_t> Ask() {
    auto kv = etcdserverpb::KV::NewStub(UnixChannel(path_));
    etcdserverpb::RangeRequest request;
    etcdserverpb::RangeResponse reply;
    Call call(std::chrono::seconds(10));
    KEELSON_RETURN_IF_ERROR(call.Done(kv->Range(call.context(), request, &reply), "range"));
    return reply.count();
  }

  std::string dir_, path_;
  Counting service_;
};

TEST_F(UnixServerTest, ServesUntilItIsDestroyed) {
  auto server = UnixServer::Start(path_, {&service_});
  ASSERT_TRUE(server) << server.error().message();
  auto count = Ask();
  ASSERT_TRUE(count) << count.error().message();
  EXPECT_EQ(*count, 7);
  server->reset();
  EXPECT_FALSE(PathExists(path_));
  EXPECT_EQ(Ask().error().code(), Code::kUnavailable);
}

TEST_F(UnixServerTest, ReplacesTheSocketOfADeadProcess) {
  {
    UniqueFd stale(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(stale.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(PathExists(path_));
  auto server = UnixServer::Start(path_, {&service_});
  ASSERT_TRUE(server) << server.error().message();
  EXPECT_TRUE(Ask());
}

TEST_F(UnixServerTest, SaysWhyItCannotListen) {
  auto absent = UnixServer::Start(dir_ + "/absent/server.sock", {&service_});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message(), "listen on " + dir_ + "/absent/server.sock: cannot bind");
  auto too_long = UnixServer::Start(dir_ + "/" + std::string(200, 'x'), {&service_});
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace keelson::rpc
