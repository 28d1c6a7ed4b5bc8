// Private to proxy/config/document*.cc: every field with its name in files and its name in upstream's internal type.
#pragma once

#include "lib/component/document_reader.h"
#include "proxy/config/document.h"

namespace keelson::proxy {

// Calls visit(path, field, zero); `zero`: the meaning of a zero in the file. Some of upstream's fields are pointers.
template <typename D, typename Visit>
void ForEachField(D& d, Visit&& visit) {
  auto value = [&](const char* path, auto& field) { visit(path, field, component::Zero::kDefault); };
  auto pointer = [&](const char* path, auto& field) { visit(path, field, component::Zero::kValue); };
  value("featureGates", d.feature_gates);
  value("clientConnection.kubeconfig", d.client.kubeconfig);
  value("clientConnection.acceptContentTypes", d.client.accept_content_types);
  value("clientConnection.contentType", d.client.content_type);
  value("clientConnection.qps", d.client.qps);
  value("clientConnection.burst", d.client.burst);
  value("logging.format", d.logging.format);
  value("logging.flushFrequency", d.logging.flush_frequency);
  value("logging.verbosity", d.logging.verbosity);
  value("hostnameOverride", d.hostname_override);
  value("bindAddress", d.bind_address);
  value("healthzBindAddress", d.healthz_bind_address);
  value("metricsBindAddress", d.metrics_bind_address);
  value("bindAddressHardFail", d.bind_address_hard_fail);
  value("enableProfiling", d.enable_profiling);
  value("showHiddenMetricsForVersion", d.show_hidden_metrics_for_version);
  value("mode", d.mode);
  pointer("iptables.masqueradeBit", d.iptables.masquerade_bit);
  value("iptables.masqueradeAll", d.iptables.masquerade_all);
  pointer("iptables.localhostNodePorts", d.iptables.localhost_node_ports);
  value("iptables.syncPeriod", d.iptables.sync_period);
  value("iptables.minSyncPeriod", d.iptables.min_sync_period);
  value("ipvs.syncPeriod", d.ipvs.sync_period);
  value("ipvs.minSyncPeriod", d.ipvs.min_sync_period);
  value("ipvs.scheduler", d.ipvs.scheduler);
  value("ipvs.excludeCIDRs", d.ipvs.exclude_cidrs);
  value("ipvs.strictARP", d.ipvs.strict_arp);
  value("ipvs.tcpTimeout", d.ipvs.tcp_timeout);
  value("ipvs.tcpFinTimeout", d.ipvs.tcp_fin_timeout);
  value("ipvs.udpTimeout", d.ipvs.udp_timeout);
  pointer("nftables.masqueradeBit", d.nftables.masquerade_bit);
  value("nftables.masqueradeAll", d.nftables.masquerade_all);
  value("nftables.syncPeriod", d.nftables.sync_period);
  value("nftables.minSyncPeriod", d.nftables.min_sync_period);
  value("winkernel.networkName", d.winkernel.network_name);
  value("winkernel.sourceVip", d.winkernel.source_vip);
  value("winkernel.enableDSR", d.winkernel.enable_dsr);
  value("winkernel.rootHnsEndpointName", d.winkernel.root_hns_endpoint_name);
  value("winkernel.forwardHealthCheckVip", d.winkernel.forward_health_check_vip);
  value("detectLocalMode", d.detect_local_mode);
  value("detectLocal.bridgeInterface", d.detect_local.bridge_interface);
  value("detectLocal.interfaceNamePrefix", d.detect_local.interface_name_prefix);
  value("clusterCIDR", d.cluster_cidr);
  value("nodePortAddresses", d.node_port_addresses);
  pointer("oomScoreAdj", d.oom_score_adj);
  pointer("conntrack.maxPerCore", d.conntrack.max_per_core);
  pointer("conntrack.min", d.conntrack.min);
  pointer("conntrack.tcpEstablishedTimeout", d.conntrack.tcp_established_timeout);
  pointer("conntrack.tcpCloseWaitTimeout", d.conntrack.tcp_close_wait_timeout);
  value("conntrack.tcpBeLiberal", d.conntrack.tcp_be_liberal);
  value("conntrack.udpTimeout", d.conntrack.udp_timeout);
  value("conntrack.udpStreamTimeout", d.conntrack.udp_stream_timeout);
  value("configSyncPeriod", d.config_sync_period);
  value("portRange", d.port_range);
  value("windowsRunAsService", d.windows_run_as_service);
}

// Calls visit(path, field); the internal type merges the sections of modes.
template <typename Visit>
void ForEachInternalField(const Document& d, Visit&& visit) {
  const bool nftables = d.mode == "nftables", ipvs = d.mode == "ipvs";
  visit("FeatureGates", d.feature_gates);
  visit("ClientConnection.Kubeconfig", d.client.kubeconfig);
  visit("ClientConnection.AcceptContentTypes", d.client.accept_content_types);
  visit("ClientConnection.ContentType", d.client.content_type);
  visit("ClientConnection.QPS", d.client.qps);
  visit("ClientConnection.Burst", d.client.burst);
  visit("Logging.format", d.logging.format);
  visit("Logging.flushFrequency", d.logging.flush_frequency);
  visit("Logging.verbosity", d.logging.verbosity);
  visit("HostnameOverride", d.hostname_override);
  visit("BindAddress", d.bind_address);
  visit("HealthzBindAddress", d.healthz_bind_address);
  visit("MetricsBindAddress", d.metrics_bind_address);
  visit("BindAddressHardFail", d.bind_address_hard_fail);
  visit("EnableProfiling", d.enable_profiling);
  visit("ShowHiddenMetricsForVersion", d.show_hidden_metrics_for_version);
  visit("Mode", d.mode);
  visit("IPTables.MasqueradeBit", d.iptables.masquerade_bit);
  visit("IPTables.LocalhostNodePorts", d.iptables.localhost_node_ports);
  visit("IPVS.Scheduler", d.ipvs.scheduler);
  visit("IPVS.ExcludeCIDRs", d.ipvs.exclude_cidrs);
  visit("IPVS.StrictARP", d.ipvs.strict_arp);
  visit("IPVS.TCPTimeout", d.ipvs.tcp_timeout);
  visit("IPVS.TCPFinTimeout", d.ipvs.tcp_fin_timeout);
  visit("IPVS.UDPTimeout", d.ipvs.udp_timeout);
  visit("NFTables.MasqueradeBit", d.nftables.masquerade_bit);
  visit("Winkernel.NetworkName", d.winkernel.network_name);
  visit("Winkernel.SourceVip", d.winkernel.source_vip);
  visit("Winkernel.EnableDSR", d.winkernel.enable_dsr);
  visit("Winkernel.RootHnsEndpointName", d.winkernel.root_hns_endpoint_name);
  visit("Winkernel.ForwardHealthCheckVip", d.winkernel.forward_health_check_vip);
  visit("DetectLocalMode", d.detect_local_mode);
  visit("DetectLocal.BridgeInterface", d.detect_local.bridge_interface);
  visit("DetectLocal.ClusterCIDRs", d.cluster_cidr);
  visit("DetectLocal.InterfaceNamePrefix", d.detect_local.interface_name_prefix);
  visit("NodePortAddresses", d.node_port_addresses);
  visit("SyncPeriod", nftables ? d.nftables.sync_period : ipvs ? d.ipvs.sync_period : d.iptables.sync_period);
  visit("MinSyncPeriod", nftables ? d.nftables.min_sync_period
                         : ipvs   ? d.ipvs.min_sync_period
                                  : d.iptables.min_sync_period);
  visit("ConfigSyncPeriod", d.config_sync_period);
  visit("Linux.Conntrack.MaxPerCore", d.conntrack.max_per_core);
  visit("Linux.Conntrack.Min", d.conntrack.min);
  visit("Linux.Conntrack.TCPEstablishedTimeout", d.conntrack.tcp_established_timeout);
  visit("Linux.Conntrack.TCPCloseWaitTimeout", d.conntrack.tcp_close_wait_timeout);
  visit("Linux.Conntrack.TCPBeLiberal", d.conntrack.tcp_be_liberal);
  visit("Linux.Conntrack.UDPTimeout", d.conntrack.udp_timeout);
  visit("Linux.Conntrack.UDPStreamTimeout", d.conntrack.udp_stream_timeout);
  visit("Linux.MasqueradeAll", nftables ? d.nftables.masquerade_all : d.iptables.masquerade_all);
  visit("Linux.OOMScoreAdj", d.oom_score_adj);
  visit("Windows.RunAsService", d.windows_run_as_service);
}

}  // namespace keelson::proxy
