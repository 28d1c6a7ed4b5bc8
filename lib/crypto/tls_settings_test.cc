#include "lib/crypto/tls_settings.h"

#include <gtest/gtest.h>

#include "lib/crypto/testing/test_pki.h"
#include "lib/crypto/tls_objects.h"

namespace keelson::crypto {
namespace {

TEST(TlsSettings, NamesAsKubernetesHasThem) {
  EXPECT_EQ(*ParseTlsVersion(""), 0x0303);
  EXPECT_EQ(*ParseTlsVersion("VersionTLS13"), 0x0304);
  EXPECT_EQ(ParseTlsVersion("TLSv1.2").error().message(), "unknown tls version \"TLSv1.2\"");
  EXPECT_EQ(*CipherList({"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256",
                         "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"}),
            "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305");
  EXPECT_EQ(CipherList({"AES128-SHA"}).error().message(),
            "Cipher suite AES128-SHA not supported or doesn't exist");
  EXPECT_EQ(*CheckTlsSettings("", {"TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}),
            std::vector<std::string>{"Use of insecure cipher 'TLS_RSA_WITH_AES_128_CBC_SHA' detected."});
  EXPECT_EQ(*CheckTlsSettings("VersionTLS13", {}), std::vector<std::string>());
  EXPECT_EQ(CheckTlsSettings("VersionTLS13", {"TLS_AES_128_GCM_SHA256"})->size(), 1u) << "it has no effect";
  EXPECT_EQ(CheckTlsSettings("VersionTLS14", {}).error().message(), "unknown tls version \"VersionTLS14\"");
}

// What two ends agree on.
struct Agreed {
  std::string version, cipher;
};

class TlsSettingsTest : public testing::Test {
 protected:
  // Empty when they do not.
  Agreed Handshake(const std::string& min_version, const std::vector<std::string>& suites, int most,
                   const std::vector<int>& curves = {}, const char* client_groups = "P-256:P-384") {
    TlsServerOptions options{pki_.server_cert_file(), pki_.server_key_file(), pki_.ca_file()};
    options.min_version = min_version;
    options.cipher_suites = suites;
    options.curves = curves;
    auto server_context = MakeServerContext(options);
    TlsClientOptions trust;
    trust.ca_pem = pki_.ca_pem();
    auto client_context = MakeClientContext(trust, false);
    if (!server_context || !client_context) return {};
    SSL_CTX_set_max_proto_version(client_context->get(), most);
    SSL_CTX_set1_groups_list(client_context->get(), client_groups);
    OpenSslPtr<SSL, SSL_free> server(SSL_new(server_context->get())), client(SSL_new(client_context->get()));
    BIO *near = nullptr, *far = nullptr;
    BIO_new_bio_pair(&near, 0, &far, 0);
    SSL_set_bio(client.get(), near, near);
    SSL_set_bio(server.get(), far, far);
    SSL_set_connect_state(client.get());
    SSL_set_accept_state(server.get());
    for (int i = 0; i < 10 && !(SSL_is_init_finished(client.get()) && SSL_is_init_finished(server.get()));
         ++i) {
      SSL_do_handshake(client.get());
      SSL_do_handshake(server.get());
    }
    OpenSslErrors();
    if (!SSL_is_init_finished(client.get()) || !SSL_is_init_finished(server.get())) return {};
    return {SSL_get_version(server.get()), SSL_CIPHER_standard_name(SSL_get_current_cipher(server.get()))};
  }
  TestPki pki_;
};

TEST_F(TlsSettingsTest, TheLeastVersionHolds) {
  EXPECT_EQ(Handshake("", {}, TLS1_2_VERSION).version, "TLSv1.2");
  EXPECT_EQ(Handshake("VersionTLS12", {}, TLS1_3_VERSION).version, "TLSv1.3");
  EXPECT_EQ(Handshake("VersionTLS13", {}, TLS1_3_VERSION).version, "TLSv1.3");
  EXPECT_EQ(Handshake("VersionTLS13", {}, TLS1_2_VERSION).version, "");
}

TEST_F(TlsSettingsTest, SuitesAreThoseThatAreNamed) {
  const std::string first = Handshake("", {}, TLS1_2_VERSION).cipher;
  ASSERT_FALSE(first.empty());
  const std::string kind = first.find("ECDSA") != std::string::npos ? "ECDSA" : "RSA";
  const std::string other = "TLS_ECDHE_" + kind + "_WITH_AES_128_GCM_SHA256";
  ASSERT_NE(first, other);
  EXPECT_EQ(Handshake("", {other}, TLS1_2_VERSION).cipher, other);
  const std::string foreign = kind == "RSA" ? "ECDSA" : "RSA";
  EXPECT_EQ(Handshake("", {"TLS_ECDHE_" + foreign + "_WITH_AES_128_GCM_SHA256"}, TLS1_2_VERSION).cipher, "");
}

TEST_F(TlsSettingsTest, GroupsAreThoseThatAreNamed) {
  for (int most : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    EXPECT_NE(Handshake("", {}, most, {24, 29}, "P-256:P-384").version, "") << most;
    EXPECT_NE(Handshake("", {}, most, {29}, "X25519:P-256").version, "") << most;
    EXPECT_EQ(Handshake("", {}, most, {24, 29}, "P-256:P-521").version, "") << most;
  }
}

}  // namespace
}  // namespace keelson::crypto
