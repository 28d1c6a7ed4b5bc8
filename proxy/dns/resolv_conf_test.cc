#include "proxy/dns/resolv_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/file.h"

namespace keelson::proxy::dns {
namespace {

std::vector<std::string> Texts(const std::vector<IpAddress>& ips) {
  std::vector<std::string> out;
  for (const IpAddress& ip : ips) out.push_back(ip.ToString());
  return out;
}

TEST(ResolvConfTest, FindsNameServers) {
  EXPECT_THAT(Texts(NameServers("# nameserver 9.9.9.9\n"
                                "search a.example b.example\n"
                                "nameserver 10.0.0.1\n"
                                "nameserver\t10.0.0.2 # second\r\n"
                                "nameserver fe80::1%eth0\n"
                                "nameserver 10.0.0.1\n"
                                "nameserver nonsense\n"
                                "nameserver\n"
                                "nameservers 10.0.0.9\n"
                                " nameserver 10.0.0.8\n"
                                "nameserver 10.0.0.3")),
              testing::ElementsAre("10.0.0.1", "10.0.0.2", "fe80::1", "10.0.0.3"));
}

TEST(ResolvConfTest, SeesChanges) {
  char dir[] = "/tmp/resolv_conf_test.XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string path = std::string(dir) + "/resolv.conf";
  ResolvConf conf(path);
  EXPECT_TRUE(conf.Changed());  // the first time
  EXPECT_FALSE(conf.Changed());
  EXPECT_FALSE(conf.Read());
  ASSERT_TRUE(WriteFileAtomic(path, "nameserver 10.0.0.1\n"));
  EXPECT_TRUE(conf.Changed());
  EXPECT_FALSE(conf.Changed());
  EXPECT_THAT(Texts(*conf.Read()), testing::ElementsAre("10.0.0.1"));
  ASSERT_TRUE(WriteFileAtomic(path, "nameserver 10.0.0.2\n"));  // another inode, the same size
  EXPECT_TRUE(conf.Changed());
  EXPECT_TRUE(RemoveTree(dir));
}

}  // namespace
}  // namespace keelson::proxy::dns
