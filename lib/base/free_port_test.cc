#include "lib/base/free_port.h"

#include <sys/socket.h>

#include <set>

#include <gtest/gtest.h>

#include "lib/base/fd.h"
#include "lib/base/socket_address.h"

namespace keelson {
namespace {

TEST(FreePortTest, CanBeBound) {
  std::set<uint16_t> ports;
  for (int i = 0; i < 20; ++i) {
    const Result<uint16_t> port = FreePort();
    ASSERT_TRUE(port) << port.error().message();
    EXPECT_GE(*port, 10000);
    ports.insert(*port);
  }
  EXPECT_GT(ports.size(), 10U) << "two processes that ask at a time rarely get the same";
  const uint16_t port = *ports.begin();
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress address(*IpAddress::Parse("127.0.0.1"), port);
  EXPECT_EQ(bind(fd.get(), address.get(), address.size()), 0);
}

}  // namespace
}  // namespace keelson
