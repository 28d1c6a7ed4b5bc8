#include "lib/linux/proc_net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace keelson::linux {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }

TEST(ProcNet, AddressesOfConnections) {
  std::set<IpAddress> got;
  AddConnectedAddresses(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
      "   0: 0100007F:2380 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
      "   1: 0700600A:9C40 0501F40A:1F90 01 00000000:00000000 00:00000000 00000000     0\n"
      "   2: 0800600A:9C41 0501F40A:1F90 06 00000000:00000000 00:00000000 00000000     0\n"
      " 102: 0900600A:9C42 0501F40A:1F90 08 00000000:00000000 00:00000000 00000000     0\n",
      got);
  EXPECT_THAT(got, ElementsAre(Ip("10.96.0.7"), Ip("10.96.0.9")));
  got.clear();
  AddConnectedAddresses(
      "  sl  local_address                         remote_address                        st\n"
      "   0: 000096FD000000000000000007000000:9C40 000001FD000000000000000001000000:1F90 01\n"
      "   1: 0000000000000000FFFF00000700600A:9C40 0000000000000000FFFF00000501F40A:1F90 02\n"
      "   2: nonsense:1 nonsense:2 01\n",
      got);
  EXPECT_THAT(got, ElementsAre(Ip("10.96.0.7"), Ip("fd96::7")));
  EXPECT_FALSE(ParseProcNetAddress("0100007"));
}

// In the kernel's format.
TEST(ProcNet, AConnectionIsSeenWhileItIsOpen) {
  auto file = ProcNetFile::Open("tcp");
  if (!file) GTEST_SKIP() << file.error().message();
  auto now = [&] {
    std::set<IpAddress> out;
    AddConnectedAddresses(*file->Read(), out);
    return out;
  };
  // An otherwise unused address.
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(0x7f4d2c63)}};
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), generic, sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  ASSERT_EQ(::getsockname(listener.get(), generic, &size), 0);
  EXPECT_THAT(now(), Not(Contains(Ip("127.77.44.99"))));
  UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), generic, sizeof address), 0);
  EXPECT_THAT(now(), Contains(Ip("127.77.44.99")));
  UniqueFd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  client.Reset();
  peer.Reset();
  EXPECT_THAT(now(), Not(Contains(Ip("127.77.44.99"))));
  EXPECT_EQ(ProcNetFile::Open("no-such-file").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace keelson::linux
